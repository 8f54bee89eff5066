/** What the sources use and Node.js 20 lacks. It is added to the single-file program only. */
Promise.withResolvers ??= function withResolvers<T>(this: PromiseConstructor) {
  let resolve: PromiseWithResolvers<T>['resolve'] = () => {};
  let reject: PromiseWithResolvers<T>['reject'] = () => {};
  const promise = new this<T>((settle, fail) => {
    resolve = settle;
    reject = fail;
  });
  return { promise, resolve, reject };
};
