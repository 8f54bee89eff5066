import { onOneHost } from '../local/harness/shared-host.ts';

onOneHost('browser/host-group-4');
