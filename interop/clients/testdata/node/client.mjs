// The configuration and the output format of all scripts.
import { KubeConfig } from '@kubernetes/client-node';

export const config = new KubeConfig();
config.loadFromDefault(); // $KUBECONFIG

// print writes a line of JSON for the test.
export function print(line) {
  process.stdout.write(JSON.stringify(line) + '\n');
}

// summary returns the members of an object that tests compare, and the code and reason of a Status.
export function summary(object) {
  const { name, resourceVersion: version, annotations } = object.metadata ?? {};
  return { name, version, annotations, code: object.code, reason: object.reason };
}

// failure returns the code of the response, and the reason and message of its Status.
export function failure(error) {
  if (!error) return { clean: true };
  let status = {};
  try {
    status = JSON.parse(error.body);
  } catch {
    // Network errors have no body, and the errors of a watch do not expose it.
  }
  return { code: error.code || error.statusCode, reason: status.reason, message: error.message };
}
