import type { Command } from './command.ts';
import { workflowPublish } from './workflow-publish.ts';
import { workflowSimulate } from './workflow-simulate.ts';
import { workflowValidate } from './workflow-validate.ts';

export const workflowCommands: readonly Command[] = [workflowValidate, workflowSimulate, workflowPublish];
