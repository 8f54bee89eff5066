import type { Agent } from '../../agents/agent.ts';
import type { ChangeAuthor } from '../../pipeline/definition-changes.ts';
import type { EnrolmentToken } from './enrolment-token.ts';

/**
 * What people change about agents. Each change has an entry in the history, in the same transaction. False means that
 * nothing was written, because the row was changed or deleted since it was read.
 */
export interface AgentChanges {
  token(tenant: string, tokenId: string): Promise<EnrolmentToken | undefined>;
  tokens(tenant: string): Promise<EnrolmentToken[]>;
  createToken(token: EnrolmentToken, by: ChangeAuthor): Promise<void>;
  changeToken(read: EnrolmentToken, token: EnrolmentToken, by: ChangeAuthor): Promise<boolean>;
  /** The token is used and the agent created, both or none. */
  enrol(token: EnrolmentToken, agent: Agent, by: ChangeAuthor): Promise<boolean>;
  changeAgent(read: Agent, agent: Agent, by: ChangeAuthor): Promise<boolean>;
  removeAgent(read: Agent, by: ChangeAuthor): Promise<boolean>;
}
