import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, it, onTestFinished } from 'vitest';
import { runLists } from '../../bench/run-lists.ts';
import { readAssembly } from '../../local/template/synthesize.ts';

it('the bench counts requests, read units and rows of a list, with each filter', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-lists-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { lists } = await runLists(readAssembly(inject('assemblies').local, 'local'), folder, 3_000);

  // 50 entries of an index are read together (1 unit), and each row of a run for itself (a unit, read consistently).
  expect(lists.none).toMatchObject({ requests: 2, readUnits: 51, rows: 50 });
  expect(lists['status, few runs']).toMatchObject({ requests: 2, readUnits: 4.5, rows: 4 });
  expect(Object.values(lists).filter(({ rows }) => rows === 0)).toEqual([]);
});
