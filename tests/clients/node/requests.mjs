// One Lease through every verb; tells what came back.
import { PatchStrategy, setHeaderOptions, V1MicroTime } from "@kubernetes/client-node";
import { connect, tell } from "./connect.mjs";

const { leases, namespace } = connect();
const name = "one";
const body = {
  metadata: { name },
  spec: { holderIdentity: "a", renewTime: new V1MicroTime("2024-05-01T10:00:00.123Z") },
};

async function codeOf(call) {
  try {
    await call();
    return null;
  } catch (error) {
    return error.code;
  }
}

function patch(kind, patchBody, more = {}) {
  return leases.patchNamespacedLease(
    { name, namespace, body: patchBody, ...more },
    setHeaderOptions("Content-Type", kind),
  );
}

const made = await leases.createNamespacedLease({ namespace, body });
const read = await leases.readNamespacedLease({ name, namespace });
tell({ same: JSON.stringify(read) === JSON.stringify(made), renewTime: read.spec.renewTime });
tell({ again: await codeOf(() => leases.createNamespacedLease({ namespace, body })) });

read.spec.holderIdentity = "b";
const replaced = await leases.replaceNamespacedLease({ name, namespace, body: read });
tell({ replaced: replaced.spec.holderIdentity });
tell({ stale: await codeOf(() => leases.replaceNamespacedLease({ name, namespace, body: read })) });

const operations = [{ op: "replace", path: "/spec/holderIdentity", value: "c" }];
tell({ json: (await patch(PatchStrategy.JsonPatch, operations)).spec.holderIdentity });
const merge = { spec: { holderIdentity: "d" } };
tell({ merge: (await patch(PatchStrategy.MergePatch, merge)).spec.holderIdentity });
const strategic = { spec: { holderIdentity: "e" } };
tell({ strategic: (await patch(PatchStrategy.StrategicMergePatch, strategic)).spec.holderIdentity });
const applied = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", spec: { holderIdentity: "f" } };
const apply = (force) =>
  patch(PatchStrategy.ServerSideApply, applied, { fieldManager: "node", force });
tell({ conflict: await codeOf(() => apply(false)) });
tell({ apply: (await apply(true)).spec.holderIdentity });

await leases.createNamespacedLease({ namespace, body: { metadata: { name: "two" } } });
const page = await leases.listNamespacedLease({ namespace, limit: 1 });
const rest = await leases.listNamespacedLease({ namespace, _continue: page.metadata._continue });
tell({ pages: [...page.items, ...rest.items].map((lease) => lease.metadata.name) });

await leases.deleteNamespacedLease({ name, namespace });
tell({ gone: await codeOf(() => leases.readNamespacedLease({ name, namespace })) });
await leases.deleteCollectionNamespacedLease({ namespace });
tell({ left: (await leases.listNamespacedLease({ namespace })).items.length });
