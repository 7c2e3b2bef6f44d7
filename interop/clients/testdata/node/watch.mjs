// watch.mjs PATH PARAMS: prints the events and the end of a watch.
import { Watch } from '@kubernetes/client-node';
import { config, failure, print, summary } from './client.mjs';

const [path, params] = process.argv.slice(2);
const event = (type, object) => print({ on: type, ...summary(object) });
const done = (error) => print({ on: 'done', ...failure(error) });
await new Watch(config).watch(path, JSON.parse(params), event, done);
