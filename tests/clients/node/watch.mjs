// Lists, then tells every event since, until it is killed.
import { Watch } from "@kubernetes/client-node";
import { connect, tell } from "./connect.mjs";

const { kubeconfig, leases, namespace, path } = connect();
const { metadata } = await leases.listNamespacedLease({ namespace });
const query = { resourceVersion: metadata.resourceVersion, allowWatchBookmarks: true };

await new Watch(kubeconfig).watch(
  path,
  query,
  (type, lease) => tell([type, lease.metadata.name, lease.spec?.holderIdentity]),
  (error) => tell(["END", error?.message ?? null]),
);
tell(["OPEN"]);
