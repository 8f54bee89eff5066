import { onOneHost } from './shared-host.ts';

onOneHost('local/host-group-5');
