import { openFakeAgent, openSimulatedAgent } from './agents.ts';
import { describeSessionProviderContract } from './session-provider-contract.ts';

describeSessionProviderContract('the agent of the chaos simulation', openFakeAgent);
describeSessionProviderContract('the agent of the local host', openSimulatedAgent);
