import { ROLES, type Role } from '../../lambdas/people/rights.ts';
import { call } from '../data/api.ts';
import { useMe } from '../data/me.ts';
import { serverNow } from '../data/server-clock.ts';
import { useDraft } from '../parts/draft.ts';
import { CheckField, SelectField, TextField } from '../parts/form.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import { useWhyNot } from '../parts/why-not.ts';
import type { CreatedKey } from './keys-page.tsx';

const DAY_MS = 24 * 60 * 60 * 1000;
const DAYS_DEFAULT = 90;

interface Typed {
  name: string;
  role?: Role;
  machine: boolean;
  days: string;
}
const NOTHING_TYPED: Typed = { name: '', machine: false, days: String(DAYS_DEFAULT) };

/** Creates a key for the person, or for a program. */
export function KeyForm({ onCreated }: { onCreated(key: CreatedKey): void }) {
  const { data: me } = useMe();
  const noMachines = useWhyNot('api-keys:write');
  const [typed, setTyped, clear] = useDraft<Typed>('key', NOTHING_TYPED);
  const change = (part: Partial<Typed>) => setTyped({ ...typed, ...part });
  const { name, machine, days, role = me?.role ?? 'member' } = typed;
  const create = async () => {
    const expiresAt = new Date(serverNow() + Number(days) * DAY_MS).toISOString();
    onCreated(await call('POST /api/v1/api-keys', { body: { name, role, machine, expiresAt } }));
    clear();
    return undefined;
  };
  return (
    <SubmitForm
      label="Create a key"
      button="Create the key"
      right="api-keys:own"
      disabledReason={problemOf(name, days)}
      command={`countersign keys create ${name || 'NAME'} --role ${role} --days ${days}${machine ? ' --machine' : ''}`}
      run={create}
    >
      <div className="form-columns">
        <TextField
          label="Name of the key"
          placeholder="deploy-pipeline"
          hint="Lower-case letters, digits, dots and dashes."
          value={name}
          onChange={(text) => change({ name: text })}
          maxLength={63}
        />
        <SelectField
          label="Role"
          hint="The key never has more rights than you."
          value={role}
          options={ROLES.map((value) => ({ value, text: value }))}
          onChange={(chosen) => change({ role: chosen })}
        />
        <TextField
          label="Days until it expires"
          hint="From 1 to 366."
          type="number"
          value={days}
          onChange={(text) => change({ days: text })}
        />
      </div>
      {noMachines === undefined ? (
        <CheckField
          label="For a program"
          hint="The key belongs to no person and stays valid when you lose your rights. A program cannot approve."
          checked={machine}
          onChange={(isMachine) => change({ machine: isMachine })}
        />
      ) : (
        <p className="secondary">Keys for programs: {noMachines}</p>
      )}
    </SubmitForm>
  );
}

function problemOf(name: string, days: string): string | undefined {
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(name)) return 'Give the key a name of lower-case letters, digits and dashes.';
  return Number(days) >= 1 && Number(days) <= 366 ? undefined : 'Give the days until it expires: from 1 to 366.';
}
