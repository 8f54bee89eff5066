/** Shares a tenant with the stage `acme-prod`. */
export const STAGING = { kind: 'staging', tenants: ['acme', 'globex'], evidenceRetentionDays: 30 };
