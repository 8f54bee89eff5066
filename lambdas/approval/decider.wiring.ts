import { wirePolicy } from '../policy/policy.wiring.ts';
import { wireRunChanger } from '../run-changes/run-changer.wiring.ts';

/** Policy decides again on an edited write. */
export function wireDecider() {
  const changer = wireRunChanger();
  return { ...changer, policy: wirePolicy(changer.stored) };
}
