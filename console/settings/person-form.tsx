import { ROLES, type Role } from '../../lambdas/people/rights.ts';
import { call } from '../data/api.ts';
import { useDraft } from '../parts/draft.ts';
import { SelectField, TextArea, TextField } from '../parts/form.tsx';
import { notifyOnNextPage } from '../parts/next-page.ts';
import { SubmitForm } from '../parts/submit.tsx';
import type { Person } from './people-page.tsx';

const ROLE_TEXTS: Record<Role, string> = {
  owner: 'Owner: everything, and confirms changes of people',
  admin: 'Admin: everything but confirming changes of people',
  operator: 'Operator: starts and controls runs, agents and schedules',
  approver: 'Approver: decides on writes',
  member: 'Member: reads',
  auditor: 'Auditor: reads, with the history of changes and API keys',
};
const RISKS = ['low', 'medium', 'high'] as const;

/** What people type, as text. */
interface Typed {
  id: string;
  name: string;
  role: Role;
  tier: Person['tier'];
  groups: string;
  identities: string;
}

const typedOf = (person: Person | undefined): Typed => ({
  id: person?.id ?? '',
  name: person?.name ?? '',
  role: person?.role ?? 'member',
  tier: person?.tier ?? 'medium',
  groups: person?.groups.join(', ') ?? '',
  identities: person?.identities.join('\n') ?? '',
});

const wordsIn = (text: string): string[] =>
  text
    .split(/[\n,]/)
    .map((each) => each.trim())
    .filter((each) => each !== '');

/** Adds a person, or changes one. */
export function PersonForm({ person, onSaved }: { person?: Person; onSaved(id: string): void }) {
  const [typed, setTyped, clear] = useDraft(`person.${person?.id ?? ''}`, typedOf(person));
  const change = (part: Partial<Typed>) => setTyped({ ...typed, ...part });
  const save = async () => {
    const { id, name, role, tier } = typed;
    const body = {
      ...{ name, role, tier, groups: wordsIn(typed.groups), identities: wordsIn(typed.identities) },
      ...(person?.away && { away: person.away }),
    };
    const saved = await call('PUT /api/v1/people/{id}', { params: { id }, body });
    clear();
    onSaved(id);
    if (!('pending' in saved)) return `${name} is saved.`;
    notifyOnNextPage(
      'Nothing has changed yet: it widens who may approve, so a second owner must confirm it.',
      'warning',
    );
    return undefined;
  };
  return (
    <SubmitForm
      label={person ? 'Change the person' : 'Add a person'}
      button={person ? 'Save the person' : 'Add the person'}
      right="people:write"
      command={`countersign people put ${typed.id || 'PERSON'}.yaml`}
      run={save}
    >
      <div className="form-columns">
        <TextField
          label="ID"
          hint="Lower-case letters, digits, dots and dashes. It never changes: votes and events name it."
          value={typed.id}
          readOnly={person !== undefined}
          onChange={(id) => change({ id })}
        />
        <TextField label="Name" value={typed.name} onChange={(name) => change({ name })} maxLength={100} />
        <SelectField
          label="Role"
          value={typed.role}
          options={ROLES.map((value) => ({ value, text: ROLE_TEXTS[value] }))}
          onChange={(role) => change({ role })}
        />
        <SelectField
          label="Highest risk that they may approve"
          hint="For approvers. Owners and admins may approve every risk."
          value={typed.tier}
          options={RISKS.map((value) => ({ value, text: value }))}
          onChange={(tier) => change({ tier })}
        />
      </div>
      <TextField
        label="Groups"
        optional
        hint="Separated by commas. Policies and workflows ask groups to approve."
        placeholder="network, database"
        value={typed.groups}
        onChange={(groups) => change({ groups })}
      />
      <TextArea
        label="Identities"
        optional
        mono
        hint="One in a line. How the person signs in (email:ana@example.com) and who they are elsewhere (slack:T0ACME/U0ANA, github:ana-dev)."
        value={typed.identities}
        onChange={(identities) => change({ identities })}
      />
    </SubmitForm>
  );
}
