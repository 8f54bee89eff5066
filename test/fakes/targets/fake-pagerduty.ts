import type { FakeAnswer, FakeRequest } from './fake-targets.ts';

interface Alert {
  dedup_key: string;
  status: 'triggered' | 'acknowledged' | 'resolved';
}

/** PagerDuty's events: those of one key merge while its alert is open, and without one only a trigger opens it. */
export class FakePagerDuty {
  readonly alerts: Alert[] = [];

  answer({ body = {} }: FakeRequest): FakeAnswer {
    const dedup_key = String(body.dedup_key);
    const open = this.alerts.find((alert) => alert.dedup_key === dedup_key && alert.status !== 'resolved');
    if (body.event_action === 'trigger') {
      if (!open) this.alerts.push({ dedup_key, status: 'triggered' });
    } else if (open) {
      open.status = body.event_action === 'resolve' ? 'resolved' : 'acknowledged';
    }
    return { status: 202, body: { status: 'success', message: 'Event processed', dedup_key } };
  }
}
