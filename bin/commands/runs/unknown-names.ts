import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import type { Api } from '../../client/api-client.ts';
import { printable, type Terminal } from '../../terminal/terminal.ts';
import { PAGE_MAX } from '../paging.ts';
import type { RunFilterQuery } from './filter-options.ts';

/**
 * After a list without runs: the names in its filter that nothing has. Not an error of the filter, because runs stay after
 * their automation or assignee is deleted.
 */
export async function noteUnknownNames(terminal: Terminal, api: Api, filter: RunFilterQuery): Promise<void> {
  const query = { limit: PAGE_MAX };
  const lists = {
    automation: async () => {
      const { automations, nextCursor } = await api.call('GET /api/v1/automations', { query });
      return { names: automations.map(({ name }) => name), nextCursor };
    },
    workflow: async () => {
      const { workflows, nextCursor } = await api.call('GET /api/v1/workflows', { query });
      return { names: workflows.map(({ name }) => name), nextCursor };
    },
    assignee: async () => {
      const { people, nextCursor } = await api.call('GET /api/v1/people', { query });
      return { names: people.map(({ id }) => id), nextCursor };
    },
  };
  for (const [field, read] of Object.entries(lists)) {
    const name = filter[field as keyof typeof lists];
    if (name === undefined) continue;
    const { names, nextCursor } = await read();
    // Longer lists are not searched.
    if (names.includes(name) || nextCursor !== null) continue;
    const what = field === 'assignee' ? 'person' : field;
    terminal.note(printable(`there is no ${what} "${name}"${didYouMean(name, names)}`));
  }
}
