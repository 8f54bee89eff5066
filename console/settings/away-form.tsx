import type { Right } from '../../lambdas/people/rights.ts';
import { call, useApi } from '../data/api.ts';
import { useMe } from '../data/me.ts';
import { Action } from '../parts/action.tsx';
import { useDraft } from '../parts/draft.ts';
import { TextField } from '../parts/form.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import type { Person } from './people-page.tsx';

const PATH = 'PUT /api/v1/people/{id}/away';

/** Who decides while a person is away. People do it for themselves; for others it needs the right to change people. */
export function AwayForm({ person: { id, name, away } }: { person: Person }) {
  const { data: me } = useMe();
  const { data } = useApi('GET /api/v1/people', { query: { limit: 100 } });
  const [typed, setTyped, clear] = useDraft(`away.${id}`, { until: '', delegate: '' });
  const { until, delegate } = typed;
  const right: Right = me?.person === id ? 'people:set-away' : 'people:write';
  if (away) {
    return (
      <div className="buttons">
        <span>
          <UntrustedText text={name} /> is away until <PointInTime at={away.until} />.{' '}
          <UntrustedText text={away.delegate} /> decides for them.
        </span>
        <Action
          label="End the absence"
          effect={<p>The person decides again; the delegate no longer does.</p>}
          right={right}
          command={() => curl(id, 'null')}
          run={async () => {
            await call(PATH, { params: { id }, body: { away: null } });
            return `${name} is back.`;
          }}
        />
      </div>
    );
  }
  const isComplete = until !== '' && delegate !== '';
  return (
    <SubmitForm
      label="Away"
      button="Set as away"
      right={right}
      disabledReason={isComplete ? undefined : 'Give a time and a delegate.'}
      command={curl(id, `{"until":"${isComplete ? new Date(until).toISOString() : 'TIME'}","delegate":"${delegate}"}`)}
      run={async () => {
        const body = { away: { until: new Date(until).toISOString(), delegate } };
        const saved = await call(PATH, { params: { id }, body });
        clear();
        if ('pending' in saved) return 'Nothing has changed yet: a second owner must confirm it.';
        return `${name} is away. ${delegate} decides for them.`;
      }}
    >
      <p className="secondary">
        Until that time the delegate may decide on behalf of <UntrustedText text={name} />. The delegate’s votes count
        once.
      </p>
      <div className="form-columns">
        <TextField
          label="Until (your local time)"
          type="datetime-local"
          value={until}
          onChange={(text) => setTyped({ ...typed, until: text })}
        />
        <TextField
          label="Delegate"
          hint="The ID of a person."
          value={delegate}
          suggestions={(data?.people ?? []).map((each) => each.id).filter((each) => each !== id)}
          onChange={(text) => setTyped({ ...typed, delegate: text })}
        />
      </div>
    </SubmitForm>
  );
}

/** The command line has no command for it. */
const curl = (id: string, away: string): string =>
  `curl -X PUT ${location.origin}/api/v1/people/${encodeURIComponent(id)}/away -H "x-api-key: $COUNTERSIGN_API_KEY" -H 'content-type: application/json' -d '{"away":${away}}'`;
