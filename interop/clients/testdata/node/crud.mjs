// crud.mjs: writes and reads pods with the typed client and widgets with the generic one, and prints
// the result of each step.
import { CoreV1Api, KubernetesObjectApi, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { config, failure, print, summary } from './client.mjs';

// step prints the part of the result that `show` returns, or the error.
async function step(on, call, show = summary) {
  try {
    const result = await call();
    print({ on, ...show(result) });
    return result;
  } catch (error) {
    print({ on, ...failure(error) });
  }
}

const labels = (object) => ({ shown: Object.entries(object.metadata.labels).map((pair) => pair.join('=')) });
const names = (list) => ({ shown: list.items.map((item) => item.metadata.name), more: Boolean(list.metadata._continue) });
const nothing = () => ({});
const as = (strategy) => setHeaderOptions('Content-Type', strategy);

const core = config.makeApiClient(CoreV1Api);
const here = { namespace: 'default' };
const pod = (name) => ({ metadata: { name, labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'i' }] } });

const first = await step('create pod', () => core.createNamespacedPod({ ...here, body: pod('a') }), nothing);
if (!first) process.exit(); // no permission
await step('create pod again', () => core.createNamespacedPod({ ...here, body: pod('a') }));
await step('create pod with an invalid name', () => core.createNamespacedPod({ ...here, body: pod('A_') }));
await step('dry run', () => core.createNamespacedPod({ ...here, body: pod('dry'), dryRun: 'All' }));
await step('read pod', () => core.readNamespacedPod({ ...here, name: 'a' }), (p) => ({
  // The typed client converts the dates of its schema.
  shown: [p.metadata.name, p.spec.containers[0].image, p.metadata.creationTimestamp.constructor.name],
}));
await step('read missing pod', () => core.readNamespacedPod({ ...here, name: 'dry' }));
await step('merge patch', () => core.patchNamespacedPod(
  { ...here, name: 'a', body: { metadata: { labels: { tier: 'front', app: null } } } }, as(PatchStrategy.MergePatch)), labels);
await step('JSON patch', () => core.patchNamespacedPod(
  { ...here, name: 'a', body: [{ op: 'add', path: '/metadata/labels/x', value: 'y' }] }, as(PatchStrategy.JsonPatch)), labels);
await step('JSON patch with a failing test', () => core.patchNamespacedPod(
  { ...here, name: 'a', body: [{ op: 'test', path: '/metadata/labels/x', value: 'z' }] }, as(PatchStrategy.JsonPatch)));
await step('replace pod at its old version', () => core.replaceNamespacedPod({ ...here, name: 'a', body: first }));
const now = await core.readNamespacedPod({ ...here, name: 'a' });
now.metadata.labels = { app: 'db' };
await step('replace pod', () => core.replaceNamespacedPod({ ...here, name: 'a', body: now }), labels);
await step('replace status', () => core.replaceNamespacedPodStatus(
  { ...here, name: 'a', body: { metadata: { name: 'a' }, status: { phase: 'Running' } } }), (p) => ({ shown: [p.status.phase] }));
await core.createNamespacedPod({ ...here, body: pod('b') });
await core.createNamespacedPod({ ...here, body: pod('c') });
await step('list by label', () => core.listNamespacedPod({ ...here, labelSelector: 'app=web' }), names);
await step('first page', () => core.listPodForAllNamespaces({ limit: 2 }), names);
await step('list with an invalid selector', () => core.listNamespacedPod({ ...here, labelSelector: '=' }));
await step('delete pod', () => core.deleteNamespacedPod({ ...here, name: 'a' }), nothing);
await step('delete pod again', () => core.deleteNamespacedPod({ ...here, name: 'a' }));
await step('delete by label', () => core.deleteCollectionNamespacedPod({ ...here, labelSelector: 'app=web' }), nothing);
await step('list remaining pods', () => core.listNamespacedPod(here), names);

const any = KubernetesObjectApi.makeApiClient(config);
const widget = { apiVersion: 'demo.example.com/v1', kind: 'Widget', metadata: { name: 'w' }, spec: { size: 1 } };
const size = (object) => ({ shown: [object.metadata.name, String(object.spec.size)] });
const made = await step('create widget', () => any.create(structuredClone(widget)), size);
await step('create widget again', () => any.create(structuredClone(widget)));
await step('read widget', () => any.read(widget), size);
await step('merge patch of widget', () => any.patch(
  { ...widget, spec: { size: 2 } }, undefined, undefined, 'test', undefined, PatchStrategy.MergePatch), size);
await step('replace widget at its old version', () => any.replace(made));
await step('list widgets', () => any.list('demo.example.com/v1', 'Widget', 'default'), names);
await step('delete widget', () => any.delete(widget), nothing);
await step('read missing widget', () => any.read(widget));
print({ on: 'done' });
