# SPDX-License-Identifier: MIT
"""A HuggingFace Trainer as its users write one: a tiny language model, no callback, no code for tscope. hf_trainer.py
OUTPUT_DIR"""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class RandomTokens(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        tokens = torch.randint(0, 128, (32,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=128, n_positions=64, n_embd=64, n_layer=2, n_head=2))
arguments = TrainingArguments(
    output_dir=sys.argv[1], max_steps=20, per_device_train_batch_size=8,
    gradient_accumulation_steps=2, logging_steps=1, report_to=[], use_cpu=True,
    save_strategy="no", ddp_backend="gloo")
trainer = Trainer(model=model, args=arguments, train_dataset=RandomTokens())
trainer.train()
trainer.save_state()
