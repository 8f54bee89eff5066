import { onOneHost } from '../local/shared-host.ts';

onOneHost('browser/host-group-3');
