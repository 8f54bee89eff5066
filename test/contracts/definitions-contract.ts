import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OidcIssuer } from '../../lambdas/entry/oidc-issuer.ts';
import { Person } from '../../lambdas/people/people.ts';
import type { Automation, Connection, Definitions } from '../../lambdas/pipeline/definitions.ts';
import { NO_SETTINGS } from '../../lambdas/run/settings/caps.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';
import { byTest } from '../fakes/by-test.ts';
import { noise } from '../fakes/noise.ts';

/** Even compressed, a few of these exceed the 1 MB of one DynamoDB response, and two exceed a row. */
const LARGE_BYTES = 350_000;

export function describeDefinitionsContract(
  name: string,
  open: () => Promise<{ definitions: Definitions; close(): Promise<void> }>,
): void {
  describe(`${name} as a tenant's definitions`, () => {
    let definitions: Definitions;
    let close: () => Promise<void>;
    let tenants = 0;
    beforeAll(async () => {
      ({ definitions, close } = await open());
    });
    afterAll(() => close());
    const newTenant = () => {
      tenants += 1;
      return `defining-${tenants}`;
    };

    const workflow = Workflow.parse({
      name: 'label-new-issue',
      steps: [{ id: 'label', tool: 'github.labels.add', with: { labels: ['triage'] } }],
    });
    const automation = (named: string, enabled = true): Automation => ({
      name: named,
      enabled,
      workspace: 'default',
      trigger: { source: 'github', event: 'issues.opened', filter: '{% true %}' },
      workflow: { name: 'label-new-issue', version: 1 },
    });
    const connection: Connection = { name: 'github', baseUrl: 'https://api.github.com', instance: 'acme' };

    it('returns nothing for a tenant without definitions', async () => {
      const tenant = newTenant();
      expect(await definitions.automations(tenant)).toEqual([]);
      expect(await definitions.workflow(tenant, 'label-new-issue', 1)).toBeUndefined();
      expect(await definitions.connection(tenant, 'github')).toBeUndefined();
    });

    it('lists all automations of a tenant, and the newest of each name', async () => {
      const tenant = newTenant();
      for (const named of ['b', 'a', 'c']) await definitions.saveAutomation(tenant, automation(named), byTest());
      await definitions.saveAutomation(tenant, automation('a', false), byTest());
      const found = await definitions.automations(tenant);
      expect(found).toEqual([automation('a', false), automation('b'), automation('c')]);
      expect(await definitions.automations(newTenant())).toEqual([]);
    });

    it('stores the lists of profiles, with an entry in the history', async () => {
      const tenant = newTenant();
      expect(await definitions.profiles(tenant)).toEqual([]);
      const profile = { name: 'prod-standard', allow: [{ executable: '/usr/bin/systemctl' }], deny: [] } as const;
      const lists = { ...profile, allow: [...profile.allow], deny: [] };
      await definitions.saveProfile(tenant, lists, byTest());
      expect(await definitions.profiles(tenant)).toEqual([lists]);
      const { items } = await definitions.changes(tenant, { limit: 5 }, { kind: 'profile' });
      expect(items).toMatchObject([{ name: 'prod-standard', action: 'created', after: lists }]);
    });

    it('stores, replaces and deletes configurations of sessions, each with an entry in the history', async () => {
      const tenant = newTenant();
      const session = {
        provider: 'agent' as const,
        command: '/bin/true',
        environment: 'dev' as const,
        capabilities: ['triage'],
      };
      const first = { name: 'triage', session, revision: 1 };
      const second = { ...first, routing: 'triages issues', revision: 2 };
      await definitions.saveConfiguration(tenant, first, byTest(), { replaces: null });
      const outdated = definitions.saveConfiguration(tenant, second, byTest(), { replaces: null });
      await expect(outdated).rejects.toMatchObject({ code: 'CONFLICT' });
      await definitions.saveConfiguration(tenant, second, byTest(), { replaces: first });
      expect(await definitions.configuration(tenant, 'triage')).toEqual(second);
      expect(await definitions.configurations(tenant)).toEqual([second]);
      expect(await definitions.configurations(newTenant())).toEqual([]);
      await expect(definitions.deleteConfiguration(tenant, first, byTest())).rejects.toMatchObject({
        code: 'CONFLICT',
      });
      await definitions.deleteConfiguration(tenant, second, byTest());
      expect(await definitions.configuration(tenant, 'triage')).toBeUndefined();
      const { items } = await definitions.changes(tenant, { limit: 5 }, { kind: 'configuration' });
      expect(items.map(({ action }) => action)).toEqual(['deleted', 'changed', 'created']);
    });

    it('stores every published version of a workflow', async () => {
      const tenant = newTenant();
      const changed = { ...workflow, description: 'better' };
      await definitions.publishWorkflow(tenant, workflow, 1, byTest());
      await definitions.publishWorkflow(tenant, changed, 2, byTest());
      expect(await definitions.workflow(tenant, workflow.name, 1)).toEqual(workflow);
      expect(await definitions.workflow(tenant, workflow.name, 2)).toEqual(changed);
      expect(await definitions.workflow(newTenant(), workflow.name, 1)).toBeUndefined();
    });

    it('accepts the identical version again', async () => {
      const tenant = newTenant();
      await definitions.publishWorkflow(tenant, workflow, 1, byTest());
      await definitions.publishWorkflow(tenant, structuredClone(workflow), 1, byTest());
      expect(await definitions.workflow(tenant, workflow.name, 1)).toEqual(workflow);
    });

    it('refuses another workflow under a published number, and the published one stays', async () => {
      const tenant = newTenant();
      await definitions.publishWorkflow(tenant, workflow, 1, byTest());
      const other = { ...workflow, description: 'not the same' };
      await expect(definitions.publishWorkflow(tenant, other, 1, byTest())).rejects.toMatchObject({
        code: 'WORKFLOW_INVALID',
      });
      expect(await definitions.workflow(tenant, workflow.name, 1)).toEqual(workflow);
    });

    describe('lists of workflows', () => {
      const named = (name: string, filler = '') =>
        Workflow.parse({ name, steps: [{ id: 'a', tool: 'transform', with: { filler } }] });

      it('are empty for a tenant that published nothing', async () => {
        const tenant = newTenant();
        expect(await definitions.newestWorkflows(tenant, { limit: 5 })).toEqual([]);
        expect(await definitions.workflowVersions(tenant, 'a', { limit: 5 })).toEqual([]);
      });

      it('have the newest version of each name, by name, from any name on', async () => {
        const tenant = newTenant();
        // A name that is the beginning of another one has only its own versions.
        for (const name of ['b', 'a-b', 'a', 'a1', 'z'])
          await definitions.publishWorkflow(tenant, named(name), 1, byTest());
        for (const version of [2, 3]) {
          await definitions.publishWorkflow(tenant, { ...named('a'), description: `${version}` }, version, byTest());
        }
        await definitions.saveAutomation(tenant, automation('b'), byTest());
        await definitions.savePerson(tenant, Person.parse({ id: 'ana', name: 'Ana', role: 'member' }), byTest());
        const all = [
          ['a', 3],
          ['a-b', 1],
          ['a1', 1],
          ['b', 1],
          ['z', 1],
        ];
        const seen = async (page: { after?: string; limit: number }) =>
          (await definitions.newestWorkflows(tenant, page)).map((each) => [each.workflow.name, each.version]);
        expect(await seen({ limit: 10 })).toEqual(all);
        expect(await seen({ limit: 2 })).toEqual(all.slice(0, 2));
        expect(await seen({ after: 'a', limit: 2 })).toEqual(all.slice(1, 3));
        expect(await seen({ after: 'aa', limit: 10 })).toEqual(all.slice(3));
        expect(await seen({ after: 'z', limit: 1 })).toEqual([]);
      });

      it('have the versions of one workflow, newest first, from any number down', async () => {
        const tenant = newTenant();
        for (let version = 1; version <= 12; version += 1) {
          await definitions.publishWorkflow(tenant, { ...named('a'), description: `${version}` }, version, byTest());
        }
        await definitions.publishWorkflow(tenant, named('a-b'), 1, byTest());
        const numbers = async (page: { before?: number; limit: number }) =>
          (await definitions.workflowVersions(tenant, 'a', page)).map(({ version }) => version);
        expect(await numbers({ limit: 3 })).toEqual([12, 11, 10]);
        expect(await numbers({ before: 10, limit: 3 })).toEqual([9, 8, 7]);
        expect(await numbers({ before: 2, limit: 3 })).toEqual([1]);
        expect(await numbers({ before: 1, limit: 3 })).toEqual([]);
        const [newest] = await definitions.workflowVersions(tenant, 'a', { limit: 1 });
        expect(newest?.workflow).toEqual({ ...named('a'), description: '12' });
      });

      it('have as many entries as requested, of any size', async () => {
        const tenant = newTenant();
        for (let version = 1; version <= 5; version += 1) {
          await definitions.publishWorkflow(tenant, named('a', noise(`${version}`, LARGE_BYTES)), version, byTest());
        }
        expect(await definitions.workflowVersions(tenant, 'a', { limit: 5 })).toHaveLength(5);
      });
    });

    it('refuses a definition that is too large for a row, by its name', async () => {
      const tenant = newTenant();
      const policies = { engine: 'cedar' as const, files: { 'a.cedar': noise('policies', 2 * LARGE_BYTES) } };
      await expect(definitions.savePolicies(tenant, policies, byTest())).rejects.toMatchObject({
        code: 'ROW_TOO_LARGE',
      });
    });

    it('returns the caps that a tenant has set, and none before', async () => {
      const tenant = newTenant();
      expect(await definitions.settings(tenant)).toEqual(NO_SETTINGS);
      const settings = { caps: { maxConcurrency: 3 }, workspaces: { payments: 2 }, counterShards: 4 };
      await definitions.saveSettings(tenant, settings, byTest());
      expect(await definitions.settings(tenant)).toEqual(settings);
      expect(await definitions.settings(newTenant())).toEqual(NO_SETTINGS);
    });

    it('reserves the issuers of the settings: one issuer and audience belong to one tenant', async () => {
      const [tenant, other] = [newTenant(), newTenant()];
      const issuer = { name: 'okta', issuer: 'https://login.example.com', audience: `for-${tenant}` };
      const second = { ...issuer, name: 'entra', audience: `also-for-${tenant}` };
      const withIssuers = (...issuers: OidcIssuer[]) => ({ ...NO_SETTINGS, issuers });
      const find = ({ issuer, audience }: OidcIssuer) => definitions.issuer(issuer, audience);
      await definitions.saveSettings(tenant, withIssuers(issuer, second), byTest());
      expect(await find(issuer)).toEqual({ ...issuer, tenant });
      expect(await definitions.issuer(issuer.issuer, 'another')).toBeUndefined();
      const taken = definitions.saveSettings(other, withIssuers(issuer), byTest());
      await expect(taken).rejects.toMatchObject({
        code: 'CONFLICT',
        message: expect.stringMatching(/another tenant of this stage/),
      });
      expect(await definitions.settings(other)).toEqual(NO_SETTINGS);
      await definitions.saveSettings(tenant, withIssuers({ ...second, clientId: 'cli' }), byTest());
      expect(await find(issuer)).toBeUndefined();
      expect(await find(second)).toEqual({ ...second, clientId: 'cli', tenant });
      await definitions.saveSettings(other, withIssuers(issuer), byTest());
      expect(await find(issuer)).toEqual({ ...issuer, tenant: other });
    });

    it('stores connections by tenant and name', async () => {
      const tenant = newTenant();
      await definitions.saveConnection(tenant, connection, byTest());
      await definitions.saveConnection(tenant, { ...connection, instance: 'moved' }, byTest());
      expect(await definitions.connection(tenant, 'github')).toEqual({ ...connection, instance: 'moved' });
      expect(await definitions.connection(newTenant(), 'github')).toBeUndefined();
    });

    describe('of changes', () => {
      const ana = Person.parse({ id: 'ana', name: 'Ana', role: 'approver' });
      const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`;
      const changesOf = async (tenant: string) =>
        (await definitions.changes(tenant, { limit: 10 })).items.map(({ actor, kind, name, action }) => [
          actor,
          kind,
          name,
          action,
        ]);

      it('has one entry for each change, written in the same transaction, newest first; a change without effect has none', async () => {
        const tenant = newTenant();
        await definitions.savePerson(tenant, ana, byTest({ actor: 'olivia', at: at(1) }));
        await definitions.savePerson(tenant, structuredClone(ana), byTest({ actor: 'otto', at: at(2) }));
        await definitions.savePerson(tenant, { ...ana, tier: 'high' }, byTest({ actor: 'otto', at: at(3) }));
        await definitions.saveConnection(tenant, connection, byTest({ at: at(4) }));
        await definitions.saveSettings(tenant, NO_SETTINGS, byTest({ at: at(5) }));
        await definitions.publishWorkflow(tenant, workflow, 1, byTest({ at: at(6) }));
        await definitions.publishWorkflow(tenant, workflow, 1, byTest({ at: at(7) }));
        expect(await changesOf(tenant)).toEqual([
          ['setup', 'workflow', 'label-new-issue v1', 'created'],
          ['setup', 'settings', tenant, 'created'],
          ['setup', 'connection', 'github', 'created'],
          ['otto', 'person', 'ana', 'changed'],
          ['olivia', 'person', 'ana', 'created'],
        ]);
        const { items } = await definitions.changes(tenant, { limit: 10 });
        expect(items[3]).toMatchObject({ at: at(3), before: { tier: 'medium' }, after: { tier: 'high' } });
        expect(await changesOf(newTenant())).toEqual([]);
      });

      it('is read page by page', async () => {
        const tenant = newTenant();
        for (let second = 1; second <= 5; second += 1) {
          await definitions.savePerson(tenant, { ...ana, name: `${second}` }, byTest({ at: at(second) }));
        }
        const seen: string[] = [];
        let after: string | undefined;
        do {
          const page = await definitions.changes(tenant, { limit: 2, ...(after !== undefined && { after }) });
          expect(page.items.length).toBeLessThanOrEqual(2);
          seen.push(...page.items.map((change) => change.at));
          after = page.next;
        } while (after !== undefined);
        expect(seen).toEqual([5, 4, 3, 2, 1].map(at));
      });

      it('shows no credentials in addresses, and the hash of a large document', async () => {
        const tenant = newTenant();
        await definitions.saveConnection(
          tenant,
          { ...connection, baseUrl: 'https://bot:hunter2@api.github.com' },
          byTest({ at: at(1) }),
        );
        const files = { 'a.cedar': noise('policies', LARGE_BYTES) };
        await definitions.savePolicies(tenant, { engine: 'cedar', files }, byTest({ at: at(2) }));
        const { items } = await definitions.changes(tenant, { limit: 10 });
        expect(JSON.stringify(items)).not.toContain('hunter2');
        expect(items[0]?.after).toEqual({ sha256: expect.stringMatching(/^[0-9a-f]{64}$/), bytes: expect.any(Number) });
      });

      it('hides fields that are named like secrets, and nothing else', async () => {
        const tenant = newTenant();
        const hidden = { clientSecret: 'hunter2', nested: [{ api_key: 'hunter2', refreshToken: 'hunter2' }] };
        const shown = { tokenUrl: 'https://github.com/token', passwords: 2, instance: 'acme' };
        await definitions.saveConnection(tenant, { ...connection, ...hidden, ...shown } as Connection, byTest());
        const { items } = await definitions.changes(tenant, { limit: 10 });
        expect(JSON.stringify(items)).not.toContain('hunter2');
        expect(items[0]?.after).toMatchObject({
          ...shown,
          clientSecret: '***',
          nested: [{ api_key: '***', refreshToken: '***' }],
        });
      });

      it('records that a secret was set, even if the definition is the same', async () => {
        const tenant = newTenant();
        await definitions.savePerson(tenant, ana, byTest({ at: at(1) }));
        await definitions.savePerson(tenant, ana, byTest({ at: at(2) }), { secretsSet: [] });
        await definitions.savePerson(tenant, ana, byTest({ at: at(3) }), { secretsSet: ['acme/github'] });
        const { items } = await definitions.changes(tenant, { limit: 10 });
        expect(items.map(({ at, action, secretsSet }) => [at, action, secretsSet])).toEqual([
          [at(3), 'changed', ['acme/github']],
          [at(1), 'created', undefined],
        ]);
      });

      it('erases the values of a change in place, and records it', async () => {
        const tenant = newTenant();
        await definitions.savePerson(tenant, ana, byTest({ at: at(1) }));
        const [change] = (await definitions.changes(tenant, { limit: 1 })).items;
        if (!change) throw new Error('the change was not recorded');
        await definitions.eraseChange(tenant, change, byTest({ actor: 'operator', at: at(2) }), 'request 4711');
        expect(await changesOf(tenant)).toEqual([
          ['operator', 'history', change.changeId, 'erased'],
          ['(erased)', 'person', '(erased)', 'created'],
        ]);
        const { items } = await definitions.changes(tenant, { limit: 10 });
        expect(items[1]).toMatchObject({ changeId: change.changeId, at: at(1), before: null, after: null });
        expect(items[1]).not.toHaveProperty('salt');
        expect(await definitions.person(tenant, 'ana')).toEqual(ana);
      });

      it('deletes a person for good: the id is not used again', async () => {
        const tenant = newTenant();
        await definitions.savePerson(tenant, ana, byTest({ at: at(1) }));
        expect(await definitions.wasDeleted(tenant, 'ana')).toBe(false);
        await definitions.deletePerson(tenant, ana, byTest({ actor: 'olivia', at: at(2) }));
        expect(await definitions.person(tenant, 'ana')).toBeUndefined();
        expect(await definitions.people(tenant)).toEqual([]);
        expect(await definitions.wasDeleted(tenant, 'ana')).toBe(true);
        expect((await changesOf(tenant))[0]).toEqual(['olivia', 'person', 'ana', 'deleted']);
        const again = definitions.deletePerson(tenant, ana, byTest({ at: at(3) }));
        await expect(again).rejects.toMatchObject({ code: 'CONFLICT' });
      });

      it('lists connections, and deletes one only as it was read', async () => {
        const tenant = newTenant();
        const other = { ...connection, name: 'slack' };
        for (const each of [other, connection]) await definitions.saveConnection(tenant, each, byTest({ at: at(1) }));
        expect(await definitions.connections(tenant)).toEqual([connection, other]);
        expect(await definitions.connections(newTenant())).toEqual([]);
        const changed = { ...connection, instance: 'other' };
        const wrong = definitions.deleteConnection(tenant, changed, byTest({ at: at(2) }));
        await expect(wrong).rejects.toMatchObject({ code: 'CONFLICT' });
        await definitions.deleteConnection(tenant, connection, byTest({ actor: 'olivia', at: at(3) }));
        expect(await definitions.connections(tenant)).toEqual([other]);
        expect((await changesOf(tenant))[0]).toEqual(['olivia', 'connection', connection.name, 'deleted']);
      });

      it('records a changed credential by the versions of its secret', async () => {
        const tenant = newTenant();
        const change = { name: 'connections/github', action: 'changed' as const, before: 'v1', after: 'v2' };
        await definitions.recordCredential(tenant, change, byTest({ actor: 'olivia', at: at(1) }));
        const { items } = await definitions.changes(tenant, { limit: 10 });
        expect(items).toMatchObject([
          { actor: 'olivia', kind: 'credential', before: { version: 'v1' }, after: { version: 'v2' } },
        ]);
      });

      it('changes and deletes a person only if they were not changed since they were read', async () => {
        const tenant = newTenant();
        const changed = { ...ana, tier: 'high' as const };
        const save = (person: Person, replaces: Person | null, second: number) =>
          definitions.savePerson(tenant, person, byTest({ at: at(second) }), { replaces });
        await save(ana, null, 1);
        await save(changed, ana, 2);
        await expect(save(ana, null, 3)).rejects.toMatchObject({ code: 'CONFLICT' });
        await expect(save({ ...ana, name: 'Anna' }, ana, 4)).rejects.toMatchObject({ code: 'CONFLICT' });
        const late = definitions.deletePerson(tenant, ana, byTest({ at: at(5) }));
        await expect(late).rejects.toMatchObject({ code: 'CONFLICT' });
        expect(await definitions.person(tenant, 'ana')).toEqual(changed);
        expect(await changesOf(tenant)).toHaveLength(2);
      });

      it('finds a person by the first identity that somebody has, in its canonical form, and at once', async () => {
        const tenant = newTenant();
        const ben = { ...ana, id: 'ben', identities: ['email:ben@example.com', 'oidc:https://login#s'] };
        await definitions.savePerson(tenant, { ...ana, identities: ['email:ana@example.com'] }, byTest({ at: at(1) }));
        await definitions.savePerson(tenant, ben, byTest({ at: at(2) }));
        const found = async (...identities: [string, ...string[]]) =>
          (await definitions.personWithIdentity(tenant, identities))?.id;
        expect(await found('oidc:https://login#s', 'email:ana@example.com')).toBe('ben');
        expect(await found('oidc:https://login#S', 'email:Ana@Example.com')).toBe('ana');
        expect(await found('oidc:https://login#x', 'email:nobody@example.com')).toBeUndefined();
        expect(await definitions.personWithIdentity(newTenant(), ['email:ana@example.com'])).toBeUndefined();

        await definitions.savePerson(tenant, { ...ben, identities: [] }, byTest({ at: at(3) }));
        expect(await found('oidc:https://login#s')).toBeUndefined();
        const moved = { ...ana, identities: ['oidc:https://login#s'] };
        await definitions.savePerson(tenant, moved, byTest({ at: at(4) }));
        expect(await found('oidc:https://login#s')).toBe('ana');
        await definitions.deletePerson(tenant, moved, byTest({ at: at(5) }));
        expect(await found('oidc:https://login#s')).toBeUndefined();
      });

      it('refuses an identity that another person has, and writes nothing', async () => {
        const tenant = newTenant();
        await definitions.savePerson(tenant, { ...ana, identities: ['github:ana'] }, byTest({ at: at(1) }));
        const ben = { ...ana, id: 'ben', identities: ['github:ben', 'github:ANA'] };
        const taken = definitions.savePerson(tenant, ben, byTest({ at: at(2) }));
        await expect(taken).rejects.toMatchObject({ code: 'CONFLICT' });
        expect(await definitions.person(tenant, 'ben')).toBeUndefined();
        expect(await changesOf(tenant)).toHaveLength(1);
        // In another tenant it is another identity.
        await definitions.savePerson(newTenant(), ben, byTest({ at: at(3) }));
      });

      it('gives an identity to one person, however many ask for it at the same time', async () => {
        const tenant = newTenant();
        const ids = ['a', 'b', 'c', 'd'];
        const outcomes = await Promise.allSettled(
          ids.map((id) => definitions.savePerson(tenant, { ...ana, id, identities: ['github:x'] }, byTest())),
        );
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
        expect((await definitions.people(tenant)).filter(({ identities }) => identities.length > 0)).toHaveLength(1);
      });

      it('leaves a tenant one owner, also if two owners resign at the same time', async () => {
        const tenant = newTenant();
        const owners = ['olivia', 'otto'].map((id) => ({ ...ana, id, role: 'owner' as const, identities: [] }));
        for (const owner of owners) await definitions.savePerson(tenant, owner, byTest());
        const [olivia, otto] = owners;
        if (!olivia || !otto) throw new Error('there are two owners');
        const outcomes = await Promise.allSettled([
          definitions.savePerson(tenant, { ...olivia, role: 'member' }, byTest(), {
            replaces: olivia,
            remainingOwner: otto,
          }),
          definitions.deletePerson(tenant, otto, byTest(), { remainingOwner: olivia }),
        ]);
        const refused = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
        expect(refused).toMatchObject([{ code: 'CONFLICT' }]);
        expect((await definitions.people(tenant)).filter(({ role }) => role === 'owner')).toHaveLength(1);
      });

      it('stores a pending change until it is confirmed or dismissed, once', async () => {
        const tenant = newTenant();
        const pending = (changeId: string) => ({
          changeId,
          kind: 'person' as const,
          person: 'ana',
          before: null,
          after: ana,
          widens: ['ana may approve'],
          requestedBy: 'olivia',
          requestedAt: at(1),
          expiresAt: at(9),
        });
        for (const id of ['chg_1', 'chg_2', 'chg_3']) {
          const by = byTest({ actor: 'olivia', at: at(1), changeId: id });
          await definitions.requestChange(tenant, pending(id), by, null);
        }
        const ids = async (page: { after?: string; limit: number }) =>
          (await definitions.pendingChanges(tenant, page)).map(({ changeId }) => changeId);
        expect(await ids({ limit: 2 })).toEqual(['chg_1', 'chg_2']);
        expect(await ids({ limit: 2, after: 'chg_2' })).toEqual(['chg_3']);
        expect(await definitions.pendingChange(tenant, 'chg_1')).toEqual(pending('chg_1'));
        expect(await definitions.pendingChange(newTenant(), 'chg_1')).toBeUndefined();
        await definitions.savePerson(tenant, ana, byTest({ actor: 'otto', at: at(2) }), { confirms: pending('chg_1') });
        expect(await definitions.person(tenant, 'ana')).toEqual(ana);
        const rejected = { action: 'rejected' as const, reason: 'no' };
        await definitions.dismissChange(tenant, pending('chg_2'), byTest({ actor: 'otto', at: at(3) }), rejected);
        expect(await ids({ limit: 9 })).toEqual(['chg_3']);
        const twice = definitions.savePerson(tenant, { ...ana, tier: 'high' }, byTest({ at: at(4) }), {
          confirms: pending('chg_1'),
        });
        await expect(twice).rejects.toMatchObject({ code: 'CONFLICT' });
        expect(await definitions.person(tenant, 'ana')).toEqual(ana);
        expect((await changesOf(tenant)).slice(0, 2)).toEqual([
          ['otto', 'person', 'ana', 'rejected'],
          ['otto', 'person', 'ana', 'confirmed'],
        ]);
      });

      it('stores pending policies of the largest size, and saves them only over the ones they were compared with', async () => {
        const tenant = newTenant();
        const policies = (text: string) => ({ engine: 'cedar' as const, files: { 'mine.cedar': text } });
        const pending = {
          kind: 'policies' as const,
          ...{
            changeId: 'chg_1',
            replaces: 'hash',
            after: policies(randomText(300_000)),
            widens: ['removes a forbid'],
          },
          ...{ requestedBy: 'olivia', requestedAt: at(1), expiresAt: at(9) },
        };
        const none = await definitions.policies(tenant);
        await definitions.savePolicies(tenant, policies('one'), byTest({ at: at(0) }), { replaces: none });
        await definitions.requestChange(tenant, pending, byTest({ actor: 'olivia', at: at(1) }), policies('one'));
        expect(await definitions.pendingChanges(tenant, { limit: 9 })).toEqual([pending]);
        const by = byTest({ actor: 'otto', at: at(2) });
        for (const replaces of [none, policies('two')]) {
          const saved = definitions.savePolicies(tenant, pending.after, by, { replaces, confirms: pending });
          await expect(saved).rejects.toMatchObject({ code: 'CONFLICT' });
        }
        const how = { replaces: await definitions.policies(tenant), confirms: pending };
        await definitions.savePolicies(tenant, pending.after, by, how);
        expect(await definitions.policies(tenant)).toEqual(pending.after);
        expect(await definitions.pendingChanges(tenant, { limit: 9 })).toEqual([]);
        expect((await changesOf(tenant)).slice(0, 3)).toEqual([
          ['otto', 'policies', tenant, 'confirmed'],
          ['olivia', 'policies', tenant, 'requested'],
          [expect.any(String), 'policies', tenant, 'created'],
        ]);
      });
    });
  });
}

/** Text that does not compress. */
const randomText = (bytes: number) =>
  Array.from({ length: bytes / 64 }, (_, index) => createHash('sha256').update(String(index)).digest('hex')).join('');
