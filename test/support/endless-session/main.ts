/**
 * `npm run endless-session -- [POLICY] [FIRST-LAST] [TURNS]`: plays sessions and prints a line for each.
 * `OPTIONS='{"keepMessages":10}'` are options of `createContextPolicy`.
 */
import { createContextPolicy } from 'turnloop/context';
import { outputLine, playSession, POLICIES, table, type SessionReport } from './index.ts';

const [name = 'turnloop', seeds = '1-20', turns = '200'] = process.argv.slice(2);
const [first = 1, last = first] = seeds.split('-').map(Number);
const options = process.env['OPTIONS'];
const createPolicy = options === undefined ? POLICIES[name] : () => createContextPolicy(JSON.parse(options) as object);
if (createPolicy === undefined) throw new Error(`There is no policy "${name}", only ${Object.keys(POLICIES).join(', ')}.`);

const reports: SessionReport[] = [];
for (let seed = first; seed <= last; seed += 1) reports.push(await playSession({ seed, turns: Number(turns), createPolicy }));
console.log(`${table(reports)}\n${outputLine(reports)}`);
for (const { seed, firstLoss, broken, notices, model } of reports) {
  if (firstLoss !== undefined) console.log(`seed ${seed}: first loss in ${firstLoss}`);
  for (const [rule, { first: where }] of broken) console.log(`seed ${seed}: ${rule} broken first in ${where}`);
  if (seed === first) console.log(Object.fromEntries(notices));
  for (const refusal of model.refusals) if (refusal.startsWith('FORESEEABLE') || seed === first) console.log(`seed ${seed}: ${refusal}`);
}
