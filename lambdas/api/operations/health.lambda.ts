import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { SignInEnvironment } from '../environment.ts';
import { handleHealth } from './health.ts';

const { ISSUERS } = readEnvironment(SignInEnvironment);

export const handler = httpHandler((event) => handleHealth({ issuers: ISSUERS }, event));
