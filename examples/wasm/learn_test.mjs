// node learn_test.mjs filters.wasm: learns every filter and says how well; exits with 1 if one is not found.
import { readFile } from 'node:fs/promises';
import { FILTERS, Learner, drawPicture, open } from './learn.mjs';

const module = await open(await readFile(process.argv[2]));
let failed = 0;
for (const name of Object.keys(FILTERS)) {
  drawPicture(module);
  const learner = new Learner(module, name);
  const first = learner.step();
  const began = performance.now();
  let last = first;
  for (let i = 0; i < 800; i++) last = learner.step();
  const each = (performance.now() - began) / 800;
  const error = learner.error();
  if (!(error < 0.05) || !(last < first / 100)) failed = 1;
  console.log(`${name.padEnd(8)} loss ${first.toExponential(1)} -> ${last.toExponential(1)}, ` +
    `largest error of a tap ${error.toFixed(4)}, ${each.toFixed(2)} ms a step`);
}
process.exit(failed);
