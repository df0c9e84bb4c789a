"""
What a state means: typical and borderline members
==================================================

:math:`p(x|z) / p(x)` says how much more frequent an image is in a state than overall. The
images with the largest ratio are typical of the state and show what it means. Members whose
:math:`p(z|x)` is spread over several states are borderline. Both follow from the posterior,
without centres or distances.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import neuralbayes as nb

digits = nb.datasets.load("digits").train
images = digits.images[..., 0]
rows = images.reshape(-1, 64) / 255
encoder = nb.MIMEncoder(hidden=(256, 256, 16), standardize=False, random_state=0).fit(rows)
p_zx = encoder.predict_proba(rows)  # of the last layer, with its 16 states

ratio = nb.density_ratio(torch.from_numpy(p_zx)).numpy()  # p(x|z) / p(x), (n_images, 16)
state = p_zx.argmax(axis=1)
uncertainty = -(p_zx * np.log(p_zx)).sum(axis=1)  # nats

# %%
# Show the eight most typical images of each state, and the eight members that it is least
# certain about. The numbers are :math:`p(x|z) / p(x)` of the first and the last image:

typical = [np.argsort(-ratio[:, k])[:8] for k in range(16)]
borderline = []
for k in range(16):
    members = np.flatnonzero(state == k)
    borderline.append(members[np.argsort(-uncertainty[members])[:8]])

figure, axes = plt.subplots(1, 2, figsize=(11, 7.8))
for ax, title, chosen in zip(
    axes, ("typical", "borderline"), (typical, borderline), strict=True
):
    names = [f"state {k}" for k in range(16)]
    ratios = [ratio[these, k].tolist() for k, these in enumerate(chosen)]
    display = nb.plot.MembersDisplay([images[these] for these in chosen], names, ratios)
    display.plot(ax=ax, cmap="gray_r").ax_.set_title(title)
plt.show()

# %%
# Now use the labels for the first time, to see which digits are in which state:

figure, ax = plt.subplots(figsize=(7.5, 4.8))
nb.plot.CrosstabDisplay.from_labels(state, digits.labels, ax=ax)
plt.show()

# %%
# On the left, nearly every row shows one digit, or one way to write it. On the right are
# images that could be mistaken for something else. Most digits have one or two states. MIM
# knows nothing about digits: it looks for sixteen states of about equal size. Some of them
# hold images that merely look alike, such as ones and twos with a foot.
