import Alert from '@cloudscape-design/components/alert';
import Button, { type ButtonProps } from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import type { RequestFor } from '../../client/api-client.ts';
import { call, problemText } from '../data/api.ts';
import { useDraft } from '../parts/draft.ts';
import { TextArea } from '../parts/form.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { useKeys } from '../shell/keyboard.ts';
import { notify } from '../shell/notices.tsx';
import { isOpen, type ShownApproval } from './approval-page.tsx';
import { EditForm } from './edit-form.tsx';

type Decision = RequestFor<'POST /api/v1/approvals/{id}/decision'>['body'];
type Mode = 'none' | 'approve' | 'reject' | 'edit';

const DONE = {
  approved: 'Approved. The write is made now.',
  counted: 'Your approval counts.',
  rejected: 'Rejected. Nothing is written.',
  edited: 'Changed. Policy has checked the new write; somebody else must approve it.',
  already: 'You had decided this already.',
} as const;

interface DecideProps {
  approval: ShownApproval;
  hasChanged: boolean;
  onDecided: (hasEdited: boolean) => void;
}

/** Approve, reject with a reason, or edit. People who may not read why not. */
export function Decide({ approval, hasChanged, onDecided }: DecideProps) {
  const { approvalId, actionHash, forDecision } = approval;
  const { you, editable } = forDecision;
  const [draft, setDraft, clearDraft] = useDraft<{ mode: Mode; reason: string }>(`decide.${approvalId}`, {
    mode: 'none',
    reason: '',
  });
  const [problem, setProblem] = useState<string>();
  const [isSending, setIsSending] = useState(false);
  const queries = useQueryClient();
  const may = you.may && isOpen(approval) && !hasChanged;
  const confirm = useRef<ButtonProps.Ref>(null);
  // After `a`, Enter confirms.
  useEffect(() => {
    if (draft.mode === 'approve') confirm.current?.focus();
  }, [draft.mode]);
  const choose = (mode: Mode) => {
    setProblem(undefined);
    setDraft({ ...draft, mode });
  };
  useKeys({
    a: may ? () => choose('approve') : undefined,
    r: may ? () => choose('reject') : undefined,
    e: may && editable.length > 0 ? () => choose('edit') : undefined,
    Escape: draft.mode === 'none' ? undefined : () => choose('none'),
  });
  const send = async (decision: Decision) => {
    setIsSending(true);
    let hasEdited = false;
    try {
      const result = await call('POST /api/v1/approvals/{id}/decision', { params: { id: approvalId }, body: decision });
      const missing = result.missing ? ` ${result.missing} more must approve.` : '';
      notify('success', `${DONE[result.outcome]}${missing}`);
      hasEdited = result.outcome === 'edited';
      clearDraft();
      await queries.invalidateQueries();
    } catch (error) {
      setProblem(problemText(error));
    }
    setIsSending(false);
    onDecided(hasEdited);
  };

  if (!isOpen(approval)) return null;
  return (
    <Container header={<Header variant="h2">Your decision</Header>}>
      <div className="decide">
        {problem !== undefined && (
          <Alert type="error">
            <UntrustedText text={problem} lines="many" max={1_000} />
          </Alert>
        )}
        {!you.may && (
          <Alert type="info" header="You cannot decide this">
            <UntrustedText text={`${problemText(new Error(you.why ?? ''))}`} lines="many" />
          </Alert>
        )}
        {you.voted === 'approve' && you.may && <p>You have approved it. Others must approve it too.</p>}
        {you.onBehalfOf !== undefined && (
          <p>
            You decide on behalf of <UntrustedText text={you.onBehalfOf} max={80} />.
          </p>
        )}
        {may && draft.mode === 'none' && (
          <div className="buttons">
            <Button variant="primary" onClick={() => choose('approve')}>
              Approve
            </Button>
            <Button onClick={() => choose('reject')}>Reject</Button>
            {editable.length > 0 && <Button onClick={() => choose('edit')}>Edit</Button>}
          </div>
        )}
        {may && draft.mode === 'approve' && (
          <>
            <p>
              The run makes exactly this write
              {approval.requirement.quorum > 1 && ' when enough people have approved it'}. If anything about it changes,
              your approval does not count.
            </p>
            <div className="buttons">
              <Button
                variant="primary"
                ref={confirm}
                loading={isSending}
                onClick={() => send({ decision: 'approve', actionHash, via: 'console' })}
              >
                Approve this write
              </Button>
              <Button onClick={() => choose('none')}>Back</Button>
            </div>
          </>
        )}
        {may && draft.mode === 'reject' && (
          <>
            <TextArea
              label="Reason"
              hint="Nothing will be written. The person who asked will read the reason."
              value={draft.reason}
              onChange={(reason) => setDraft({ ...draft, reason })}
              autoFocus
            />
            <div className="buttons">
              <Button
                variant="primary"
                loading={isSending}
                disabled={draft.reason.trim() === ''}
                disabledReason="Give a reason"
                onClick={() => send({ decision: 'reject', reason: draft.reason.trim(), actionHash, via: 'console' })}
              >
                Reject this write
              </Button>
              <Button onClick={() => choose('none')}>Back</Button>
            </div>
          </>
        )}
        {may && draft.mode === 'edit' && (
          <EditForm
            approval={approval}
            isSending={isSending}
            onSave={(fields) => send({ decision: 'edit', fields, actionHash, via: 'console' })}
            onBack={() => choose('none')}
          />
        )}
      </div>
    </Container>
  );
}
