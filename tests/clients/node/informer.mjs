// Tells what the informer's callbacks are told; starts it again when it lost its server.
import { makeInformer } from "@kubernetes/client-node";
import { connect, tell } from "./connect.mjs";

const { kubeconfig, leases, namespace, path } = connect();
const informer = makeInformer(kubeconfig, path, () => leases.listNamespacedLease({ namespace }));

for (const verb of ["add", "update", "delete"]) {
  informer.on(verb, ({ metadata, spec }) =>
    tell([verb, metadata.name, spec.holderIdentity, informer.list(namespace).length]),
  );
}
informer.on("error", () => {
  tell(["error"]);
  setTimeout(() => informer.start(), 100);
});
await informer.start();
