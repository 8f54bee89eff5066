import { useLocation } from 'wouter';
import { call, useApi } from '../data/api.ts';
import { useMe } from '../data/me.ts';
import { Action, word } from '../parts/action.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { Problem } from '../parts/problem.tsx';
import { Facts, Section } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { AwayForm } from './away-form.tsx';
import type { Person } from './people-page.tsx';
import { PersonForm } from './person-form.tsx';
import { SettingsArea } from './settings-area.tsx';

export default function PersonPage({ id }: { id: string }) {
  const { data: person, error, refetch } = useApi('GET /api/v1/people/{id}', { params: { id } });
  if (!person) {
    return (
      <SettingsArea title="Person">{error ? <Problem error={error} retry={refetch} /> : 'Loading …'}</SettingsArea>
    );
  }
  return (
    <SettingsArea
      title={person.name}
      description={`${person.role}, ${person.id}`}
      actions={<Buttons person={person} />}
    >
      <Granted person={person} />
      <Section title="Away">
        <AwayForm person={person} />
      </Section>
      <Section title="Role, groups and identities">
        <PersonForm key={JSON.stringify(person)} person={person} onSaved={() => undefined} />
      </Section>
    </SettingsArea>
  );
}

function Buttons({ person: { id, name, rights } }: { person: Person }) {
  const [, go] = useLocation();
  const { data: me } = useMe();
  return (
    <div className="buttons">
      {rights && rights.confirmedBy === undefined && (
        <Action
          label="Confirm their rights"
          effect={
            <p>
              You confirm, independently of <UntrustedText text={rights.changedBy} />, that{' '}
              <UntrustedText text={name} /> may approve. Their approvals then also count for writes of those who granted
              the rights.
            </p>
          }
          right="people:write"
          disabledReason={me?.person === rights.changedBy ? 'You granted them; somebody else must confirm.' : undefined}
          command={() => `countersign people confirm ${word(id)}`}
          run={async () => {
            await call('POST /api/v1/people/{id}/confirm', { params: { id } });
            return `The rights of ${name} are confirmed.`;
          }}
        />
      )}
      <Action
        label="Delete the person"
        effect={
          <p>
            <UntrustedText text={name} /> can no longer sign in, and their API keys stop working. Their past votes stay.
            The ID cannot be used again.
          </p>
        }
        right="people:write"
        disabledReason={me?.person === id ? 'Nobody can delete themselves.' : undefined}
        command={() => `countersign people delete ${word(id)}`}
        run={async () => {
          await call('DELETE /api/v1/people/{id}', { params: { id } });
          go('/settings/people');
          return `${name} is deleted.`;
        }}
      />
    </div>
  );
}

/** Who granted the rights to approve, and for which writes they count. */
function Granted({ person: { rights, delegates = [] } }: { person: Person }) {
  if (!rights && delegates.length === 0) return null;
  return (
    <Facts
      facts={[
        ...(rights
          ? ([
              ['Rights granted by', <UntrustedText key="by" text={rights.changedBy} />],
              ['Granted', <PointInTime key="at" at={rights.changedAt} />],
              ['Confirmed by', <UntrustedText key="also" text={rights.confirmedBy ?? 'nobody yet'} />],
              [
                'Approvals do not count for writes of',
                <UntrustedText key="not" text={rights.dependsOn.join(', ') || 'nobody: they count for all'} />,
              ],
            ] as const)
          : []),
        ...(delegates.length > 0
          ? ([
              [
                'May always decide for them',
                <UntrustedText key="delegates" text={delegates.map((each) => each.person).join(', ')} />,
              ],
            ] as const)
          : []),
      ]}
    />
  );
}
