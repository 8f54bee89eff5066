/** `INC0010001` of `servicenow:acme:INC0010001`. */
export const shortSubject = (subject: string): string => subject.slice(subject.lastIndexOf(':') + 1);
