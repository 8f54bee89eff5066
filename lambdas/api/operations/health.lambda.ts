import { httpHandler, json } from '../../entry/http.ts';

/** Says only that requests reach the stage; what is wrong inside it is for alarms to tell. */
export const handler = httpHandler(async () => json(200, { status: 'ok' }));
