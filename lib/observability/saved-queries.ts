import { type ILogGroup, QueryDefinition, QueryString } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import type { NodeFunction } from '../node-function.ts';
import type { StageConfig } from '../stage-config.ts';

interface SavedQueriesProps {
  config: StageConfig;
  /** Functions that process runs, whose logs are searched. */
  functions: readonly NodeFunction[];
}

/** A line that has only metrics has the level of the stage, which may be ERROR. */
const FAILURES = "level = 'ERROR' and (ispresent(event_type) or ispresent(message))";

/** What people ask the log during an incident. Logs Insights shows the queries in the folder of the stage. */
export class SavedQueries extends Construct {
  constructor(scope: Construct, id: string, { config, functions }: SavedQueriesProps) {
    super(scope, id);
    const logGroups = [...new Set(functions.map(({ logGroup }) => logGroup))];
    const save = (name: string, query: QueryString) => this.#save(config, name, query, logGroups);
    save(
      'Everything about one run',
      new QueryString({
        fields: ['@timestamp', 'level', 'event_type', 'message', 'step', 'status', 'error_code', '@message'],
        filterStatements: ["session_id = 'put the id of the run here' or runId = 'put the id of the run here'"],
        sort: '@timestamp asc',
        limit: 1000,
      }),
    );
    save(
      'Failures by code',
      new QueryString({
        filterStatements: [FAILURES],
        statsStatements: ['count(*) as errors by coalesce(error_code, error.name, message) as code'],
        sort: 'errors desc',
        limit: 50,
      }),
    );
    save(
      'Failures by tenant',
      new QueryString({
        filterStatements: [FAILURES],
        statsStatements: ['count(*) as errors by coalesce(tenant_id, tenant) as of_tenant'],
        sort: 'errors desc',
        limit: 50,
      }),
    );
    save(
      'Slow attempts by connector',
      new QueryString({
        filterStatements: ['ispresent(connector) and ispresent(duration_ms)'],
        statsStatements: [
          'count(*) as attempts, pct(duration_ms, 50) as p50, pct(duration_ms, 95) as p95 by connector, tool',
        ],
        sort: 'p95 desc',
        limit: 50,
      }),
    );
  }

  #save({ stage }: StageConfig, name: string, queryString: QueryString, logGroups: ILogGroup[]): void {
    const queryDefinitionName = `countersign-${stage}/${name}`;
    new QueryDefinition(this, name.replaceAll(' ', ''), { queryDefinitionName, queryString, logGroups });
  }
}
