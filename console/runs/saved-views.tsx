import Button from '@cloudscape-design/components/button';
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import { useState } from 'react';
import { useMe } from '../data/me.ts';
import { safeText } from '../parts/untrusted-text.tsx';
import { filterOf, type RunQuery, searchOf } from './run-filter.ts';

interface View {
  name: string;
  search: string;
}

const KEY = 'countersign.views';
const VIEWS_MAX = 30;

const own = (person: string): View[] => [
  { name: 'Assigned to me', search: searchOf({ assignee: person }) },
  { name: 'Need a person', search: 'needsResolution=true' },
  { name: 'Approval overdue', search: 'overdue=true' },
  { name: 'Failed', search: 'status=failed_terminal' },
];

function readViews(): View[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(stored) ? stored.filter((view) => typeof view?.name === 'string') : [];
  } catch {
    return [];
  }
}

/** Filters with a name, in this browser. To share one, send the address of the page. */
export function SavedViews({ filter, onShow }: { filter: RunQuery; onShow: (filter: RunQuery) => void }) {
  const { data: me } = useMe();
  const [views, setViews] = useState(readViews);
  const search = searchOf(filter);
  const save = (next: View[]) => {
    localStorage.setItem(KEY, JSON.stringify(next));
    setViews(next);
  };
  const saveThis = () => {
    const name = prompt('Name of this view')?.trim();
    if (name) save([...views.filter((view) => view.name !== name), { name, search }].slice(-VIEWS_MAX));
  };
  const isSaved = views.some((view) => view.search === search);
  const shown = [...own(me?.person ?? ''), ...views];
  return (
    <div className="buttons">
      <ButtonDropdown
        items={shown.map(({ name, search }) => ({ id: search, text: safeText(name, 60) }))}
        onItemClick={({ detail }) => onShow(filterOf(detail.id))}
      >
        Views
      </ButtonDropdown>
      {isSaved ? (
        <Button onClick={() => save(views.filter((view) => view.search !== search))}>Delete this view</Button>
      ) : (
        <Button disabled={search === ''} onClick={saveThis}>
          Save this view
        </Button>
      )}
    </div>
  );
}
