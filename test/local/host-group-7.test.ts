import { onOneHost } from './harness/shared-host.ts';

onOneHost('local/host-group-7');
