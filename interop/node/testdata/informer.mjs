// informer.mjs: tells what an informer of the pods in namespace default calls back, and for each line of input what it holds. It is
// started again after an error, as the documentation of client-node advises.
import { CoreV1Api, makeInformer } from '@kubernetes/client-node';
import { createInterface } from 'node:readline';
import { config, failure, summary, tell } from './client.mjs';

const api = config.makeApiClient(CoreV1Api);
const list = () => api.listNamespacedPod({ namespace: 'default' });
const informer = makeInformer(config, '/api/v1/namespaces/default/pods', list);
for (const on of ['add', 'update', 'delete']) {
  informer.on(on, (pod) => tell({ on, ...summary(pod) }));
}
informer.on('connect', () => tell({ on: 'connect' }));
informer.on('error', (error) => {
  tell({ on: 'error', ...failure(error) });
  setTimeout(() => informer.start(), 100);
});

createInterface(process.stdin)
  .on('line', () => {
    const versions = informer.list().map((pod) => [pod.metadata.name, pod.metadata.resourceVersion]);
    tell({ on: 'cache', objects: Object.fromEntries(versions) });
  })
  .on('close', () => process.exit());
await informer.start();
