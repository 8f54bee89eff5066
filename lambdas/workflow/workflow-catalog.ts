import type { PublishedWorkflow } from './workflow.ts';

export interface PublishedVersion {
  version: number;
  workflow: PublishedWorkflow;
}

/** What a tenant has published, to look through. */
export interface WorkflowCatalog {
  /** The newest version of each workflow, by name; those whose name comes after `after`. */
  newest(tenant: string, page: { after?: string; limit: number }): Promise<PublishedVersion[]>;
  /** The versions of one workflow, newest first; those before number `before`. */
  versions(tenant: string, name: string, page: { before?: number; limit: number }): Promise<PublishedVersion[]>;
}
