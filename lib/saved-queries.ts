import { type ILogGroup, QueryDefinition, QueryString } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import type { NodeFunction } from './node-function.ts';
import type { StageConfig } from './stage-config.ts';

interface SavedQueriesProps {
  config: StageConfig;
  /** Functions that process runs, whose logs are searched. */
  functions: readonly NodeFunction[];
}

/** What people ask the log during an incident. Logs Insights shows the queries in the folder of the stage. */
export class SavedQueries extends Construct {
  constructor(scope: Construct, id: string, { config, functions }: SavedQueriesProps) {
    super(scope, id);
    const logGroups = [...new Set(functions.map(({ logGroup }) => logGroup))];
    const save = (name: string, query: QueryString) => this.#save(config, name, query, logGroups);
    save(
      'Everything about one run',
      new QueryString({
        fields: ['@timestamp', 'level', 'message', 'stepId', 'status', 'error.name', '@message'],
        filterStatements: ["runId = 'put the id of the run here'"],
        sort: '@timestamp asc',
        limit: 1000,
      }),
    );
    save(
      'Errors by code',
      new QueryString({
        filterStatements: ["level = 'ERROR'"],
        statsStatements: ['count(*) as errors by error.name, message'],
        sort: 'errors desc',
        limit: 50,
      }),
    );
    save(
      'Errors by tenant',
      new QueryString({
        filterStatements: ["level = 'ERROR'"],
        statsStatements: ['count(*) as errors by tenant'],
        sort: 'errors desc',
        limit: 50,
      }),
    );
    save(
      'Slow and failed invocations',
      new QueryString({
        fields: ['@timestamp', '@log', 'record.metrics.durationMs', 'record.status'],
        filterStatements: [
          "type = 'platform.report'",
          "record.metrics.durationMs > 3000 or record.status != 'success'",
        ],
        sort: 'record.metrics.durationMs desc',
        limit: 100,
      }),
    );
  }

  #save({ stage }: StageConfig, name: string, queryString: QueryString, logGroups: ILogGroup[]): void {
    const queryDefinitionName = `countersign-${stage}/${name}`;
    new QueryDefinition(this, name.replaceAll(' ', ''), { queryDefinitionName, queryString, logGroups });
  }
}
