import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { hebrewNoise } from '../../fakes/noise.ts';
import { GovernedWorkshop } from '../governance/governed-workshop.ts';
import { SYS_ID } from '../workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const NAMES = Array.from({ length: 40 }, (_, n) => `u_text_${n}`);
const REWRITE = `
name: rewrite
steps:
  - id: rewrite
    tool: servicenow.incident.update
    with:
      sysId: "${SYS_ID}"
      fields: { ${NAMES.map((name) => `${name}: "{% trigger.payload.${name} %}"`).join(', ')} }
`;
const fortyFields = (seed: string) =>
  Object.fromEntries(NAMES.map((name) => [name, hebrewNoise(`${seed} ${name}`, 3_000)]));

it('40 fields of 3,000 Hebrew letters are shown with the values they replace, approved and written', async () => {
  const [was, will] = [fortyFields('was'), fortyFields('will be')];
  const incident = shop.outside.incidents.get(SYS_ID);
  Object.assign(incident?.fields ?? {}, was);
  const { message, approval } = await shop.upToGate(REWRITE, { trigger: { payload: will } });
  expect(approval).toMatchObject({ before: was, after: will });
  await shop.say(approval, 'ben');
  await shop.work(message);
  const now = await shop.now(message);
  expect(now.run.status).toBe('succeeded');
  expect(shop.outside.incidents.get(SYS_ID)?.fields).toMatchObject(will);
});
