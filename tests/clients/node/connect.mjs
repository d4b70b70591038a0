// What every program here needs: the kubeconfig and namespace it was called with, and one JSON
// line for each thing it has to tell.
import { CoordinationV1Api, KubeConfig } from "@kubernetes/client-node";

const [kubeconfigFile, namespace] = process.argv.slice(2);

export function connect() {
  const kubeconfig = new KubeConfig();
  kubeconfig.loadFromFile(kubeconfigFile);
  const leases = kubeconfig.makeApiClient(CoordinationV1Api);
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  return { kubeconfig, leases, namespace, path };
}

export function tell(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}
