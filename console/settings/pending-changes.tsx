import { call, useApi } from '../data/api.ts';
import { Action, word } from '../parts/action.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { Section } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { useWhyNot } from '../parts/why-not.ts';

/** Changes that wait for a second owner. Nothing is shown if there are none. */
export function PendingChanges() {
  const enabled = useWhyNot('changes:read') === undefined;
  const { data } = useApi('GET /api/v1/changes/pending', { query: { limit: 50 } }, { enabled });
  const pending = (enabled && data?.pending) || [];
  if (pending.length === 0) return null;
  return (
    <Section title="Changes that wait for a second owner">
      <ul className="plain-list">
        {pending.map((change) => {
          const { changeId, widens, requestedBy, requestedAt, expiresAt, expired } = change;
          const what = change.kind === 'person' ? change.person : 'the policies';
          return (
            <li key={changeId}>
              <UntrustedText text={requestedBy} /> wants to change <UntrustedText text={what} />:{' '}
              <UntrustedText text={widens.join('; ')} max={1_000} /> (<PointInTime at={requestedAt} />
              {expired ? ', expired' : ''}
              {!expired && (
                <>
                  , expires <PointInTime at={expiresAt} />
                </>
              )}
              ){' '}
              <span className="buttons">
                <Action
                  label="Confirm the change"
                  effect={<p>It takes effect at once. You share the responsibility for it.</p>}
                  right="changes:decide"
                  disabledReason={expired ? 'It has expired. Request it again.' : undefined}
                  command={() => `countersign changes confirm ${word(changeId)}`}
                  run={async () => {
                    await call('POST /api/v1/changes/pending/{id}/confirm', { params: { id: changeId } });
                    return `The change of ${what} is confirmed.`;
                  }}
                />
                <Action
                  label="Reject the change"
                  effect={<p>Nothing changes. Your reason is in the history.</p>}
                  right="changes:decide"
                  reason={{ label: 'Reason', required: true }}
                  command={(reason) =>
                    `countersign changes reject ${word(changeId)} --reason ${word(reason || 'TEXT')}`
                  }
                  run={async (reason) => {
                    const params = { id: changeId };
                    await call('POST /api/v1/changes/pending/{id}/reject', { params, body: { reason } });
                    return `The change of ${what} is rejected.`;
                  }}
                />
              </span>
            </li>
          );
        })}
      </ul>
    </Section>
  );
}
