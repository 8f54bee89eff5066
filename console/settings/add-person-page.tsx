import { useLocation } from 'wouter';
import { PersonForm } from './person-form.tsx';
import { SettingsArea } from './settings-area.tsx';

export default function AddPersonPage() {
  const [, go] = useLocation();
  return (
    <SettingsArea
      title="Add a person"
      description="A person can sign in if one of their identities comes from a sign-in issuer."
    >
      <PersonForm onSaved={(id) => go(`/settings/people/${encodeURIComponent(id)}`)} />
    </SettingsArea>
  );
}
