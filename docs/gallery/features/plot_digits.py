"""
Features without labels, tested with a few labels
=================================================

:class:`~neuralbayes.MIMEncoder` learns features of handwritten digits from their pixels
alone: it maximises the information that each hidden layer carries about the image. Labels
show how useful the features are: a linear classifier is trained on one, three, ten or
thirty labels per digit, and tested on unseen images.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

import neuralbayes as nb

digits = nb.datasets.load("digits")  # comes with scikit-learn: no download
x_train, x_test = (
    part.images.reshape(-1, 64) / 255 for part in (digits.train, digits.test)
)
y_train, y_test = digits.train.labels, digits.test.labels

# Use one scale for all pixels, so that the nearly constant border is not amplified.
encoder = nb.MIMEncoder(standardize=False, random_state=0).fit(x_train)
for n, information in zip(encoder.n_states_, encoder.mutual_information_, strict=True):
    print(
        f"{n} states say {information:.2f} of at most {np.log(n):.2f} nats about the image"
    )

# %%
# Compare with the pixels, and with the same network before training.

untrained = nb.MIMEncoder(standardize=False, random_state=0)
untrained.set_params(max_epochs=1, learning_rate=1e-9).fit(x_train)
features = {  # brought to length 1, which a linear classifier likes
    "MIM": [normalize(encoder.transform(x)) for x in (x_train, x_test)],
    "pixels": [normalize(x) for x in (x_train, x_test)],
    "untrained network": [normalize(untrained.transform(x)) for x in (x_train, x_test)],
}


def accuracy(train, test, n_labels, rng):
    """Accuracy of logistic regression with `n_labels` labels per digit."""
    of_digit = [np.flatnonzero(y_train == c) for c in range(10)]
    rows = np.concatenate(
        [rng.choice(these, n_labels, replace=False) for these in of_digit]
    )
    classifier = LogisticRegression(C=100.0, max_iter=1000)
    return classifier.fit(train[rows], y_train[rows]).score(test, y_test)


labels = (1, 3, 10, 30)
found = {}
for name, (train, test) in features.items():
    draws = [np.random.default_rng(seed) for seed in range(10)]
    found[name] = 100 * np.array(
        [[accuracy(train, test, n, rng) for rng in draws] for n in labels]
    )
    means = (
        f"{mean:.1f} % with {n}"
        for mean, n in zip(found[name].mean(axis=1), labels, strict=True)
    )
    print(f"{name}: {', '.join(means)}")

# %%
figure, ax = plt.subplots(figsize=(7, 4.2))
for name, accuracies in found.items():
    mean, spread = accuracies.mean(axis=1), accuracies.std(axis=1)
    (line,) = ax.plot(labels, mean, marker="o", label=name)
    ax.fill_between(
        labels, mean - spread, mean + spread, color=line.get_color(), alpha=0.12
    )
ax.set(xscale="log", xlabel="labels per digit", ylabel="accuracy on test images, %")
ax.set_xticks(labels, [str(n) for n in labels])
ax.minorticks_off()
ax.legend(loc="lower right")
ax.set_title("a linear classifier on three kinds of features; bands: draws of the labels")
plt.show()

# %%
# The learnt features are always ahead, and most of all with few labels: similar images are
# already close to each other, so one label says something about many images. The untrained
# network does not improve on the pixels.
