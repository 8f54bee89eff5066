import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RULES_FOLLOWED } from '../observer.ts';
import { FOUND_BEFORE, type FoundBefore, PlantedBugSearch } from './planted-bug-search.ts';
import { PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';

/** More than a test tries: some bugs show in one of a thousand simulations. */
const SEEDS = 4_000;
const THREADS = 2;

interface Search {
  bug: PlantedBug;
  kind: keyof FoundBefore;
}

const shown = PLANTED_BUGS.filter(({ breaksRule }) => breaksRule !== undefined);
const left: Search[] = [
  ...PLANTED_BUGS.map((bug) => ({ bug, kind: 'found' as const })),
  ...shown.map((bug) => ({ bug, kind: 'shown' as const })),
];
const now: FoundBefore = { found: {}, shown: {} };
let missed = 0;

async function searchAll(): Promise<void> {
  const search = await PlantedBugSearch.start(SEEDS);
  for (let next = left.shift(); next; next = left.shift()) {
    const { bug, kind } = next;
    const before = FOUND_BEFORE[kind][bug.name];
    const found = await search.find(bug, before, kind === 'shown' ? RULES_FOLLOWED : undefined);
    if (found) now[kind][bug.name] = found.again;
    else missed += 1;
    if (found?.again !== before) console.log(`${bug.name}: ${before ?? 'new'} → ${found?.again ?? 'not found'}`);
  }
  await search.stop();
}
await Promise.all(Array.from({ length: THREADS }, searchAll));

const inOrder = (jobs: Record<string, string>) =>
  Object.fromEntries(PLANTED_BUGS.flatMap(({ name }) => (jobs[name] ? [[name, jobs[name]]] : [])));
const text = JSON.stringify({ found: inOrder(now.found), shown: inOrder(now.shown) }, undefined, 2);
writeFileSync(join(import.meta.dirname, 'found-before.json'), `${text}\n`);
console.log(`${PLANTED_BUGS.length} bugs, ${missed} not found`);
process.exitCode = missed === 0 ? 0 : 1;
