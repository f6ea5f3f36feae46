/** `npx tsx test/support/endless-session/main.ts [tail-trim|summarise-always] [SEEDS] [TURNS]`: the sessions, one line each. */
import { summariseAlways, tailTrim } from './naive-policies.ts';
import { playSession, type SessionReport } from './play-session.ts';
import { outputLine, table } from './report.ts';

const POLICIES = { 'tail-trim': tailTrim, 'summarise-always': summariseAlways };

const [name = 'tail-trim', seeds = '2', turns = '200'] = process.argv.slice(2);
const createPolicy = POLICIES[name as keyof typeof POLICIES];
const reports: SessionReport[] = [];
const started = performance.now();
for (let seed = 1; seed <= Number(seeds); seed += 1) reports.push(await playSession({ seed, turns: Number(turns), createPolicy }));
console.log(table(reports));
console.log(outputLine(reports));
console.log(`${((performance.now() - started) / 1000).toFixed(1)} s`);
for (const { seed, broken, firstLoss, model, notices } of reports.slice(0, 3)) console.log(seed, firstLoss, Object.fromEntries(broken), Object.fromEntries(notices), process.env['REFUSALS'] ? model.refusals : '');
