#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manifests of scripts/kubernetes against the models that Kubeflow publishes, and the image for their init
container: kubernetes_jobs.py BUILD SOURCE. Models of Trainer, JobSet and Kubernetes are strict: they are made from the
schemas, and refuse a wrong type. Unknown keys are found by comparing what went in with what comes out."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from outcomes import Skip  # noqa: E402

BUILD, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:3])
FOLDER = os.path.join(SOURCE, "scripts", "kubernetes")
IMAGE = "localhost/tscope:test"


def documents(name):
    import yaml
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def check_against(model, document):
    seen = model.from_dict(document).to_dict()
    assert seen == document, f"{document['kind']}: keys that the schema does not know: {document} {seen}"


def check_pytorchjob(document):
    """The older operator's models do not refuse anything; its pods are those of Kubernetes, which the others' do."""
    import kubeflow.training as old
    import kubeflow_trainer_api.models as models
    attributes = old.KubeflowOrgV1PyTorchJob.attribute_map, old.KubeflowOrgV1PyTorchJobSpec.attribute_map, \
        old.KubeflowOrgV1ReplicaSpec.attribute_map
    replicas = document["spec"]["pytorchReplicaSpecs"]
    assert set(document) <= set(attributes[0].values()) and set(document["spec"]) <= set(attributes[1].values())
    for kind, replica in replicas.items():
        assert kind in ("Master", "Worker") and set(replica) <= set(attributes[2].values()), (kind, replica)
        template = replica["template"]
        assert models.IoK8sApiCoreV1PodTemplateSpec.from_dict(template).to_dict() == template, template


def pods(value):
    """All specifications of pods in a document."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for one in value.values():
            yield from pods(one)
    elif isinstance(value, list):
        for one in value:
            yield from pods(one)


def check_preload(pod):
    """What is preloaded is what the init container copies, on a volume that both have."""
    volumes = {volume["name"] for volume in pod["volumes"]}
    copier, = pod["initContainers"]
    target = copier["args"][1].split()[-1].rstrip("/")
    for container in pod["containers"]:
        environment = {variable["name"]: variable.get("value") for variable in container["env"]}
        assert environment["LD_PRELOAD"] == f"{target}/libtscope.so", environment
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert mounts[target] == copier["volumeMounts"][0]["name"], mounts
        assert environment["TSCOPE_DIR"] in mounts and set(mounts.values()) <= volumes, mounts


def check_manifests():
    import kubeflow_trainer_api.models as models
    runtime, job = documents("trainjob.yaml")
    check_against(models.TrainerV1alpha1TrainingRuntime, runtime)
    check_against(models.TrainerV1alpha1TrainJob, job)
    jobset, = documents("jobset.yaml")
    check_against(models.JobsetV1alpha2JobSet, jobset)
    old, = documents("pytorchjob.yaml")
    check_pytorchjob(old)
    checked = [pod for document in (runtime, jobset, old) for pod in pods(document)]
    assert len(checked) == 3, checked
    for pod in checked:
        check_preload(pod)


def buildah(*arguments):
    return subprocess.run(["buildah", "--storage-driver", "vfs", *arguments], check=True, capture_output=True,
                          text=True).stdout.strip()


def check_image():
    """In the image, the init container's command copies a library that is the build's, and the commands run."""
    subprocess.run([os.path.join(FOLDER, "build"), BUILD, IMAGE], check=True, stdout=subprocess.DEVNULL)
    container = buildah("from", IMAGE)
    try:
        copied = "mkdir /tscope-library && cp /tscope/libtscope.so /tscope-library/ && ls /tscope-library"
        assert buildah("run", "--isolation", "chroot", container, "--", "/bin/sh", "-c", copied) == "libtscope.so"
        version = buildah("run", "--isolation", "chroot", container, "--", "tscope-report", "--version")
        assert version.startswith("tscope-report "), version
    finally:
        buildah("rm", container)
        buildah("rmi", IMAGE)


def main():
    try:
        import kubeflow.training  # noqa: F401
        import kubeflow_trainer_api  # noqa: F401
    except ImportError as error:
        raise Skip(f"{error} (scripts/setup long)") from error
    check_manifests()
    if shutil.which("buildah") and shutil.which("busybox"):
        check_image()
    else:
        print("the image is not built: needs buildah and busybox-static (scripts/setup long)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
