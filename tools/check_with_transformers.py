#!/usr/bin/env python3
"""Does Hugging Face's transformers see in a model folder of ours what we see? Loads the folder with its Auto classes, lets
both answer the same few texts and compares. Folders: a run or its model/, BERT with any of its three heads, or GPT-2.

    tools/check_with_transformers.py runs/my-run/model [--syncopate build/syncopate] [--tolerance 1e-4]

Compared are: of classifiers the logits; of masked words the logarithms of the likeliest words' probabilities; of questions
how much less our answer scores than the best span by transformers' logits; of GPT-2 the mean loss of the texts and greedy
continuations. Exits with 0 when the largest difference is within the tolerance, 1 when it is not, 2 without transformers, 3
when the folder or our program fails.
"""
import argparse, csv, json, subprocess, sys, tempfile
from pathlib import Path

try:
    import torch
    import transformers
except ImportError as error:
    print(f"transformers and torch are needed to compare with ({error}); install both: pip install torch transformers",
          file=sys.stderr)
    sys.exit(2)

# Accents, capitals, punctuation, digits, a script that vocabularies rarely have, and a text that is cut.
TEXTS = [
    ("A small animal that lives in the water.", "It is a fish."),
    ("Déjà vu: the café's 3rd opening cost $1,250.50 (roughly)!", "Nothing was opened."),
    ("to move quickly or suddenly", "to stand still"),
    ("東京 is the capital of Japan; don't you think?", "Tokyo is in Japan."),
    ("a very long sentence that goes on and on " * 40, "and a second one that is long as well " * 30),
]
MASKED = [
    "a small [MASK] that lives in the water",
    "The [MASK] of a country is where its [MASK] meets.",
    "someone who [MASK] for a living; a worker",
]
PARAGRAPH = ("A debenture is a certificate of debt. Émile Zola, born in Paris in 1840, was a French novelist. "
             "The river Rhine is about 1,230 km long and flows into the North Sea.")
QUESTIONS = ["What is a debenture?", "Where was Émile Zola born?", "How long is the Rhine?",
             "Into which sea does it flow?"]


transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


class Failed(Exception):
    pass


def ours(program, command, *arguments):
    done = subprocess.run([program, command, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{program} {command} failed: {done.stderr.strip() or done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


class Check:
    def __init__(self, folder, config, program, length):
        self.folder, self.config, self.program = folder, config, program
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        positions = self.config.get("max_position_embeddings", self.config.get("n_positions", 512))
        self.length = length or min(self.tokenizer.model_max_length, positions)

    def load(self, auto_class):
        model = auto_class.from_pretrained(self.folder).eval().float()
        for tensor in model.parameters():
            tensor.requires_grad_(False)
        return model

    def predict(self, *arguments):
        return ours(self.program, "predict", "--model", self.folder, "--max-length", self.length, *arguments)

    def classification(self, scratch):
        model = self.load(transformers.AutoModelForSequenceClassification)
        with open(scratch / "texts.csv", "w", newline="") as file:
            csv.writer(file).writerows([("text", "pair"), *TEXTS])
        for paired in (False, True):
            columns = ["--text", "text"] + (["--text-pair", "pair"] if paired else [])
            answers = self.predict("--task", "csv", "--data", scratch / "texts.csv", *columns)
            if len(answers) != len(TEXTS):
                raise Failed(f"expected {len(TEXTS)} answers, got {len(answers)}")
            for (text, pair), answer in zip(TEXTS, answers):
                inputs = self.tokenizer(text, pair if paired else None, truncation="longest_first",
                                        max_length=self.length, return_tensors="pt")
                theirs = model(**inputs).logits[0]
                label = model.config.id2label[int(theirs.argmax())]
                difference = (theirs - torch.tensor(answer["logits"])).abs().max().item()
                yield f"logits of {shown(text)}{' and its pair' if paired else ''}", difference, label == answer["label"]

    def masked_words(self, scratch):
        model = self.load(transformers.AutoModelForMaskedLM)
        answers = self.predict("--task", "mlm", "--best", 5, *(word for text in MASKED for word in ("--prompt", text)))
        for text, answer in zip(MASKED, answers, strict=True):
            inputs = self.tokenizer(text, return_tensors="pt")
            places = (inputs["input_ids"][0] == self.tokenizer.mask_token_id).nonzero()[:, 0]
            theirs = model(**inputs).logits[0, places].log_softmax(-1)
            for logarithms, candidates in zip(theirs, answer["masks"], strict=True):
                ids = self.tokenizer.convert_tokens_to_ids([each["word"] for each in candidates])
                mine = torch.tensor([each["probability"] for each in candidates]).log()
                # The words by their own probabilities, and that there are none likelier.
                best = logarithms.topk(len(ids)).values
                difference = max((logarithms[ids] - mine).abs().max(), (best - mine).abs().max()).item()
                yield f"\"{candidates[0]['word']}\" and others in {shown(text)}", difference, True

    def questions(self, scratch):
        model = self.load(transformers.AutoModelForQuestionAnswering)
        asked = [{"id": str(i), "question": question, "answers": []} for i, question in enumerate(QUESTIONS)]
        document = {"version": "1.1", "data": [{"title": "check", "paragraphs": [{"context": PARAGRAPH, "qas": asked}]}]}
        (scratch / "questions.json").write_text(json.dumps(document))
        (answers,) = self.predict("--task", "squad", "--data", scratch / "questions.json")
        for i, question in enumerate(QUESTIONS):
            inputs = self.tokenizer(question, PARAGRAPH, return_offsets_mapping=True, return_tensors="pt")
            if inputs["input_ids"].shape[1] > self.length:
                raise Failed(f"the check's paragraph does not fit into {self.length} tokens; use a longer --max-length")
            offsets = inputs.pop("offset_mapping")[0].tolist()
            context = [at for at, part in enumerate(inputs.sequence_ids(0)) if part == 1]
            output = model(**inputs)
            starts, ends = output.start_logits[0], output.end_logits[0]
            scores = {}  # the best score of each text
            for start in context:
                for end in context:
                    if start <= end < start + 30:
                        text = PARAGRAPH[offsets[start][0]:offsets[end][1]]
                        scores[text] = max(scores.get(text, -1e9), (starts[start] + ends[end]).item())
            if answers[str(i)] not in scores:
                raise Failed(f"our answer \"{answers[str(i)]}\" is no stretch of the paragraph")
            yield f"answer to {shown(question)}", max(scores.values()) - scores[answers[str(i)]], True

    def next_words(self, scratch):
        model = self.load(transformers.AutoModelForCausalLM)
        texts = [text for text, _ in TEXTS[:4]]
        (scratch / "texts.txt").write_text("\n".join(texts) + "\n")
        end = model.config.eos_token_id
        stream = [id for text in texts for id in [*self.tokenizer(text)["input_ids"], end]]
        total = count = 0
        for begin in range(0, len(stream) - 1, self.length):
            block = torch.tensor([stream[begin:begin + self.length]])
            if block.shape[1] < 2:
                continue
            total += model(block, labels=block).loss.item() * (block.shape[1] - 1)
            count += block.shape[1] - 1
        (score,) = ours(self.program, "evaluate", "--task", "clm", "--data", scratch / "texts.txt", "--model", self.folder,
                        "--max-length", self.length, "--json")
        yield f"mean loss of {count} tokens", abs(total / count - score["loss"]), True
        words = 20
        prompts = ["a small", "The", "someone who", "to move"]
        answers = self.predict("--task", "clm", "--tokens", words, "--temperature", 0,
                               *(word for text in prompts for word in ("--prompt", text)))
        for text, answer in zip(prompts, answers, strict=True):
            inputs = self.tokenizer(text, return_tensors="pt")
            whole = model.generate(**inputs, max_new_tokens=words, do_sample=False, pad_token_id=end)[0]
            added = [id for id in whole[inputs["input_ids"].shape[1]:].tolist() if id != end]
            theirs = self.tokenizer.decode(added, clean_up_tokenization_spaces=False)
            same = theirs == answer["continuation"]
            yield f"continuation of \"{text}\": {shown(answer['continuation'])}" + \
                ("" if same else f", transformers: {shown(theirs)}"), 0.0, same


def shown(text):
    return f"\"{text if len(text) < 40 else text[:37] + '...'}\""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a run, or a model folder")
    parser.add_argument("--syncopate", default="build/syncopate", help="our program (default: %(default)s)")
    parser.add_argument("--tolerance", default=1e-4, type=float, help="largest difference allowed (default: %(default)s)")
    parser.add_argument("--max-length", default=0, type=int, help="tokens of a text; default: as the model was trained")
    options = parser.parse_args()
    folder = options.folder / "model" if (options.folder / "model").is_dir() else options.folder
    kinds = {"BertForSequenceClassification": Check.classification, "BertForMaskedLM": Check.masked_words,
             "BertForQuestionAnswering": Check.questions, "GPT2LMHeadModel": Check.next_words}
    try:
        if not (folder / "config.json").exists():
            raise Failed(f"{folder} holds no config.json; give a model folder")
        config = json.loads((folder / "config.json").read_text())
        architecture = (config.get("architectures") or [config.get("model_type", "model without a type")])[0]
        if architecture not in kinds:
            raise Failed(f"{folder} says that it is a {architecture}; compared are {', '.join(kinds)}")
        check = Check(folder, config, options.syncopate, options.max_length)
        largest, all_same = 0.0, True
        with tempfile.TemporaryDirectory() as scratch:
            for what, difference, same in kinds[architecture](check, Path(scratch)):
                print(f"{difference:9.2e}  {'' if same else 'ANSWERS DIFFER: '}{what}", flush=True)
                largest, all_same = max(largest, difference), all_same and same
    except (Failed, OSError, ValueError) as error:
        print(f"check_with_transformers: {error}", file=sys.stderr)
        return 3
    good = all_same and largest <= options.tolerance
    print(f"{architecture}: largest difference {largest:.2e}, tolerance {options.tolerance:.0e}"
          f"{'' if all_same else ', and answers differ'}: {'they agree' if good else 'THEY DO NOT AGREE'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
