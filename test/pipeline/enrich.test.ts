import { describe, expect, it } from 'vitest';
import { enrich } from '../../lambdas/pipeline/enrich.ts';
import { hashOf } from '../../lambdas/run/canonical-json.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

const enriched = (fields: Record<string, unknown>) =>
  enrich({ source: 'servicenow', event: 'incident.insert', fields, payload: {}, receivedAt: STORY_BEGINS_AT });

describe('6.2 enrichment', () => {
  it('has title, actor, severity and link, where the trigger has them', () => {
    expect(enriched({ title: ' Database down ', actor: 'ana', severity: '1', url: 'https://x' })).toEqual({
      title: 'Database down',
      actor: 'ana',
      severity: '1',
      links: ['https://x'],
    });
    expect(enriched({ title: 'x', actor: null, severity: 1 })).toEqual({ title: 'x', links: [] });
  });

  it.each([undefined, null, '', '   ', 7, {}])('fails without a title (%j), and names the event', (title) => {
    expect(() => enriched({ title })).toThrow(
      expect.objectContaining({ code: 'ENRICHMENT_FAILED', message: expect.stringContaining('incident.insert') }),
    );
  });

  it('shortens a long title without a lone surrogate, which cannot be hashed', () => {
    const { title } = enriched({ title: `${'x'.repeat(299)}😀 and more` });
    expect(title).toHaveLength(300);
    expect(() => hashOf(title)).not.toThrow();
  });
});
