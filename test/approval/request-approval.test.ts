import { expect, it } from 'vitest';
import { assertFits } from '../../lambdas/approval/request-approval.ts';
import { APPROVAL_MAX_BYTES, type Approval } from '../../lambdas/run/approval.ts';
import { approvalItem, itemBytes, ROW_MAX_BYTES, toItem } from '../../lambdas/run/dynamo/dynamo-items.ts';
import { ACTION, approvalOf } from '../slack/approvals.ts';

/** Printable ASCII that hardly compresses, the same every time. */
function randomText(characters: number, seed: number): string {
  let drawn = seed;
  const character = () => {
    drawn = (drawn * 48_271) % 2_147_483_647;
    return String.fromCodePoint(0x23 + (drawn % 90));
  };
  return Array.from({ length: characters }, character).join('').replaceAll('\\', '/');
}

/** A write with the values before and after it. */
function holding(characters: number): { approval: Approval; input: unknown } {
  const fields = { note: randomText(characters / 2, 1) };
  const before = { note: randomText(characters / 2, 2) };
  return { approval: approvalOf({ action: { ...ACTION, fields }, before, after: fields }), input: { fields } };
}

const REST_OF_IT_BYTES = 4_000;

it('the largest approval fits its row and the row of its step, even with random text', () => {
  const { approval, input } = holding(APPROVAL_MAX_BYTES - REST_OF_IT_BYTES);
  expect(() => assertFits(approval, input)).not.toThrow();
  expect(itemBytes(approvalItem(approval))).toBeLessThan(ROW_MAX_BYTES);
  const { action, before: expects } = approval;
  const step = { input, governed: { request: { action } }, expects };
  expect(itemBytes(toItem({ pk: 'RUN#acme#run_1', sk: 'STEP#0001' }, step))).toBeLessThan(ROW_MAX_BYTES);
});

it('a larger approval is refused', () => {
  const { approval, input } = holding(APPROVAL_MAX_BYTES);
  expect(() => assertFits(approval, input)).toThrow(/has 49\d{4} bytes of text; the limit is 491520/);
});
