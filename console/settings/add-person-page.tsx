import { useLocation } from 'wouter';
import { PersonForm } from './person-form.tsx';
import { SettingsArea } from './settings-area.tsx';

export default function AddPersonPage() {
  const [, go] = useLocation();
  return (
    <SettingsArea
      title="Add a person"
      description="They can sign in as soon as one of their identities is that of a sign-in issuer."
    >
      <PersonForm onSaved={(id) => go(`/settings/people/${encodeURIComponent(id)}`)} />
    </SettingsArea>
  );
}
