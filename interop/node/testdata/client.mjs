// What the scripts share: how they are configured, and how they tell the test what they see.
import { KubeConfig } from '@kubernetes/client-node';

export const config = new KubeConfig();
config.loadFromDefault(); // $KUBECONFIG

// tell prints a line of JSON.
export function tell(line) {
  process.stdout.write(JSON.stringify(line) + '\n');
}

// what the test asks of an object: of a Status, its code and reason.
export function summary(object) {
  const { name, resourceVersion: version, annotations } = object.metadata ?? {};
  return { name, version, annotations, code: object.code, reason: object.reason };
}

// failure tells of an error: the code of the answer, and what its Status says.
export function failure(error) {
  if (!error) return { clean: true };
  let status = {};
  try {
    status = JSON.parse(error.body);
  } catch {
    // Errors of the network have no body, and those of a watch don't show it.
  }
  return { code: error.code || error.statusCode, reason: status.reason, message: error.message };
}
