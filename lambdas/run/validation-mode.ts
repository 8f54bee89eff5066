/** Which writes people must approve even if policy allows them (source 001, 4.1). From the most to the least strict. */
export const VALIDATION_MODES = ['per_step', 'per_phase', 'critical_only', 'final_only'] as const;
export type ValidationMode = (typeof VALIDATION_MODES)[number];

export const isWeaker = (mode: ValidationMode, than: ValidationMode): boolean =>
  VALIDATION_MODES.indexOf(mode) > VALIDATION_MODES.indexOf(than);
