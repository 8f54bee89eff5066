import { closeNameOr } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import { genericSource } from '../../intake/signing-secrets.ts';
import { triggersOf } from '../../pipeline/automation.ts';
import { CHANGES_SEEN_WITHIN_MS } from '../../pipeline/cached-definitions.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { type GenericSource, readBy } from '../../pipeline/generic-source.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { expressionProblems } from '../../workflow/checks/check-expressions.ts';
import { tried } from '../../workflow/checks/expression-limits.ts';
import type { Expressions } from '../../workflow/expressions/expressions.ts';
import type { sourceRoutes } from '../contract/definitions/sources.ts';
import { type Paged, pageOf, readPage } from '../paging.ts';
import type { Handlers } from '../router.ts';
import { authorOf } from './change-person.ts';

export interface SourcesPorts extends Paged {
  definitions: Pick<Definitions, 'sources' | 'saveSource' | 'deleteSource' | 'automations'>;
  clock: Clock;
  ids: Ids;
  expressions: Expressions;
}

export const sourceHandlers: Handlers<SourcesPorts, typeof sourceRoutes> = {
  async listSources(ports, { caller: { tenant }, query }) {
    // Every webhook reads all of them too, so a tenant has few.
    const all = await ports.definitions.sources(tenant);
    const page = await readPage(ports, `${tenant}/sources`, query, (place) => pageOf(all, place, ({ name }) => name));
    const sources = page.items.map((source) => sourceView(tenant, source));
    return { status: 200, body: { sources, nextCursor: page.nextCursor } };
  },

  async getSource(ports, { caller: { tenant }, params: { name } }) {
    return { status: 200, body: sourceView(tenant, await mustFind(ports, tenant, name)) };
  },

  async saveSource(ports, { caller, params: { name }, body }) {
    if (body.name !== undefined && body.name !== name) {
      throw new Problem(400, 'BAD_REQUEST', `the body has the name ${body.name}, the path has ${name}`);
    }
    const before = (await ports.definitions.sources(caller.tenant)).find((each) => each.name === name);
    const source = { ...body, name, ...authorOfReading({ ...body, name }, before, caller.person) };
    await assertValid(ports, caller.tenant, source);
    await ports.definitions.saveSource(caller.tenant, source, authorOf(ports, caller));
    const effectiveWithinSeconds = CHANGES_SEEN_WITHIN_MS / 1000;
    return { status: 200, body: { ...sourceView(caller.tenant, source), effectiveWithinSeconds } };
  },

  async deleteSource(ports, { caller, params: { name } }) {
    const { tenant } = caller;
    await mustFind(ports, tenant, name);
    const users = (await ports.definitions.automations(tenant)).filter((automation) =>
      triggersOf(automation).some(({ source, ...wanted }) => source === 'generic' && sourceOf(wanted) === name),
    );
    if (users.length > 0) {
      const names = users.map((each) => each.name).join(', ');
      throw new Problem(409, 'CONFLICT', `these automations wait for ${name}: ${names}; change them first`);
    }
    await ports.definitions.deleteSource(tenant, name, authorOf(ports, caller));
    return { status: 200, body: { deleted: name } };
  },
};

/** The person who wrote how events are read stays their author when another person saves the source with the same texts. */
function authorOfReading(source: GenericSource, before: GenericSource | undefined, person: string) {
  if (!before || hashOf(readBy(before)) !== hashOf(readBy(source))) return { author: person };
  return before.author === undefined ? {} : { author: before.author };
}

const sourceOf = (wanted: { event?: string }) => wanted.event?.split('.')[0];

const sourceView = (tenant: string, source: GenericSource) => ({
  ...source,
  path: `/webhooks/generic/${tenant}/${source.name}`,
  secretEntry: genericSource(source.name),
});

async function mustFind({ definitions }: SourcesPorts, tenant: string, name: string): Promise<GenericSource> {
  const all = await definitions.sources(tenant);
  const found = all.find((source) => source.name === name);
  if (found) return found;
  const names = all.map((source) => source.name);
  throw new Problem(404, 'NOT_FOUND', `there is no webhook source ${name}${closeNameOr('sources list', name, names)}`);
}

async function assertValid({ expressions }: SourcesPorts, tenant: string, source: GenericSource): Promise<void> {
  const templates = readBy(source);
  const problems = expressionProblems(templates, { roots: ['trigger'], steps: new Set() });
  const [wrong] = problems.length > 0 ? problems : await tried(expressions, tenant, templates);
  if (wrong) throw new Problem(422, 'SOURCE_INVALID', `${wrong.path.join('.')}: ${wrong.message}`);
}
