// watch.mjs PATH PARAMS: tells the events of a watch, and how it ends.
import { Watch } from '@kubernetes/client-node';
import { config, failure, summary, tell } from './client.mjs';

const [path, params] = process.argv.slice(2);
const event = (type, object) => tell({ on: type, ...summary(object) });
const done = (error) => tell({ on: 'done', ...failure(error) });
await new Watch(config).watch(path, JSON.parse(params), event, done);
