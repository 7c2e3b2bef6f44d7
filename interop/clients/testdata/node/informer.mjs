// informer.mjs: prints the notifications of an informer of the pods in namespace default, and its
// content for each line of input. After an error it starts the informer again, as the documentation
// of client-node advises.
import { CoreV1Api, makeInformer } from '@kubernetes/client-node';
import { createInterface } from 'node:readline';
import { config, failure, print, summary } from './client.mjs';

const api = config.makeApiClient(CoreV1Api);
const list = () => api.listNamespacedPod({ namespace: 'default' });
const informer = makeInformer(config, '/api/v1/namespaces/default/pods', list);
for (const on of ['add', 'update', 'delete']) {
  informer.on(on, (pod) => print({ on, ...summary(pod) }));
}
informer.on('connect', () => print({ on: 'connect' }));
informer.on('error', (error) => {
  print({ on: 'error', ...failure(error) });
  setTimeout(() => informer.start(), 100);
});

createInterface(process.stdin)
  .on('line', () => {
    const versions = informer.list().map((pod) => [pod.metadata.name, pod.metadata.resourceVersion]);
    print({ on: 'cache', objects: Object.fromEntries(versions) });
  })
  .on('close', () => process.exit());
await informer.start();
